-- sweep: reads the jobs of holder ?1 that are overdue at ?2 and were leased for at most ?4; for a dead holder the caller passes the
-- largest time for both. Contract: LeaseStore::sweep.
SELECT seq, id, lane, wanted, attempt, takeovers, takeovers_counted, started_fence = fence, key, fence, group_key
  FROM jobs INDEXED BY jobs_held
 WHERE state = 'leased' AND holder = ?1 AND overdue_ms <= ?2 AND overdue_ms - leased_ms <= ?4
 ORDER BY overdue_ms LIMIT ?3;
