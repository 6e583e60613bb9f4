-- attempt_succeeded: reads the record of the attempt that succeeded. Contract: ReadStore::attempts.
SELECT attempt, settled_fence, ran_by, started_ms, duration_ms, success_code FROM rewheel_finished WHERE id = ? AND ran_by IS NOT NULL
