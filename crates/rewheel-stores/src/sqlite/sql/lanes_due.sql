-- lanes_due: the first ?2 scheduled jobs that are due at ?1 or before, by lane. Contract: WorkStore::lanes_due.
SELECT lane, min(due_ms), count(*)
  FROM (SELECT lane, due_ms FROM jobs INDEXED BY jobs_soon WHERE state = 'scheduled' AND due_ms <= ?1 ORDER BY due_ms LIMIT ?2)
 GROUP BY lane;
