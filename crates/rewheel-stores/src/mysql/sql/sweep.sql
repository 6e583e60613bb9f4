-- sweep: reads and locks those of the given jobs that a holder has, that are overdue, and that were leased for at most a given time. Contract:
-- LeaseStore::sweep. Jobs that are being settled are left alone.
SELECT id, fence, lane, place, wanted, attempt, `key`, takeovers, takeovers_counted, group_key, claim, due_ms, deadline_ms, parent, holder, state,
       settled_fence = 0, version, started_fence <> 0 AND started_fence = fence
  FROM rewheel_jobs FORCE INDEX (id)
 WHERE id IN ({list}) AND state = 1 AND holder = ? AND overdue_ms <= ? AND overdue_ms - leased_ms <= ?
 LIMIT ?
   FOR UPDATE SKIP LOCKED;
