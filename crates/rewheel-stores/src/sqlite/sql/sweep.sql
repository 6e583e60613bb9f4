-- sweep: jobs of holder ?1 that are overdue at ?2; for a holder that is not alive ?2 is the end of time.
-- Contract: LeaseStore::sweep.
SELECT seq, id, lane, wanted, attempt, takeovers, takeovers_counted, started_fence = fence, key, fence
  FROM jobs INDEXED BY jobs_held
 WHERE state = 'leased' AND holder = ?1 AND overdue_ms <= ?2
 ORDER BY overdue_ms LIMIT ?3;
