-- deadlines_lock: locks jobs whose deadline has passed. Jobs that are being settled are left alone.
SELECT id, fence, lane, place, wanted, attempt, NULL, takeovers, takeovers_counted, group_key, claim, due_ms, deadline_ms, parent, holder, state,
       settled_fence = 0, version
  FROM rewheel_jobs FORCE INDEX (id)
 WHERE id IN ({list}) AND deadline_ms <= ? AND (state <> 1 OR deadline_ms <= ?)
   FOR UPDATE SKIP LOCKED;
