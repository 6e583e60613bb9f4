-- settle_find: reads and locks the jobs among the given ones that a holder has. Contract: WorkStore::settle, give_back.
SELECT id, fence, lane, place, wanted, attempt, `key`, takeovers, takeovers_counted, group_key, claim, due_ms, deadline_ms, parent, holder, state,
       settled_fence = 0, version
  FROM rewheel_jobs FORCE INDEX (id)
 WHERE id IN ({list}) AND state = 1 AND holder = ?
   FOR UPDATE;
