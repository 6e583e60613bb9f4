-- lock_live: reads and locks the columns that are needed to end or free live jobs.
SELECT id, fence, lane, place, wanted, attempt, `key`, takeovers, takeovers_counted, group_key, claim, due_ms, deadline_ms, parent, holder, state,
       settled_fence = 0, version
  FROM rewheel_jobs FORCE INDEX (id)
 WHERE id IN ({list})
   FOR UPDATE;
