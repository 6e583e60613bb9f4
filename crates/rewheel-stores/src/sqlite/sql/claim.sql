-- claim: reads at most ?4 jobs of lane ?1 that are due until ?2, now ?3. Contract: WorkStore::claim. The caller leases them in the same
-- transaction. UPDATE with RETURNING would copy each row and take a third longer.
SELECT {claimed_job}, seq
  FROM jobs INDEXED BY jobs_due                              -- one index range, whatever the statistics say
 WHERE state = 'scheduled' AND lane = ?1 AND due_ms <= ?2
   AND (deadline_ms IS NULL OR deadline_ms > ?3)             -- the deadline sweep ends those
 ORDER BY due_ms, seq
 LIMIT ?4;
