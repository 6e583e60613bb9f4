-- let_go: releases a job, which stays live. Contract: WorkStore::settle, give_back.
UPDATE rewheel_jobs FORCE INDEX (PRIMARY)
   SET state = ?, version = version + 1, attempt = ?, due_ms = ?, because = COALESCE(?, because),
       holder = 0, claim = 0, leased_ms = 0, overdue_ms = 0, wanted = 0, started_fence = 0,
       settled_by = ?, settled_fence = fence, settled_kept = 0,
       failure_code = IF(? IS NULL, failure_code, ?),
       failure_category = COALESCE(?, failure_category), failure_message = COALESCE(?, failure_message),
       lane = ?, place = ?
 WHERE lane = ? AND place = ? AND state = 1 AND holder = ? AND fence = ?;
