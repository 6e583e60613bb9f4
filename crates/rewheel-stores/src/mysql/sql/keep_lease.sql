-- keep_lease: keeps a sticky retry with its holder, under a new fence. Contract: WorkStore::settle. MySQL assigns from left to right.
UPDATE rewheel_jobs FORCE INDEX (PRIMARY)
   SET settled_by = holder, settled_fence = fence, settled_kept = 1, fence = GREATEST(fence, ?) + 1, version = version + 1,
       attempt = ?, due_ms = ?, because = ?, leased_ms = ?, overdue_ms = ?,
       failure_code = IF(? IS NULL, failure_code, ?),
       failure_category = COALESCE(?, failure_category), failure_message = COALESCE(?, failure_message)
 WHERE lane = ? AND place = ? AND state = 1 AND holder = ? AND fence = ?;
