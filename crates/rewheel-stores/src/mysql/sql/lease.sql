-- lease: leases jobs, which were just found, to a holder. Contract: WorkStore::claim. `LEAST`: a sum must not exceed the largest integer,
-- 9223372036854775807, and is a DECIMAL until then. The columns keep their sizes.
UPDATE rewheel_jobs FORCE INDEX (PRIMARY)
   SET state = 1, holder = ?, claim = ?, leased_ms = ?, fence = GREATEST(fence, ?) + 1, version = version + 1, settled_kept = 0,
       overdue_ms = GREATEST(due_ms, ?)
                  + LEAST(9223372036854775807 - GREATEST(due_ms, ?), COALESCE(LEAST(attempt_timeout_ms, ?), CAST(? AS DECIMAL(20))) + ?)
 WHERE lane = ? AND place IN ({list}) AND state = 0;
