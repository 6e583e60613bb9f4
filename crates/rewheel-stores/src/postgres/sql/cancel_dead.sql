-- cancel_dead: cancels dead letters $1, now $2, kept until $3.
WITH gone AS (DELETE FROM rewheel.dead WHERE id = ANY ($1::uuid[]) RETURNING dead.*)
INSERT INTO rewheel.finished (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                              takeovers_counted, settled_by, settled_fence, created_ms, deadline_ms, attempts_max,
                              attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
                              failure_message, ended_ms, expires_ms, payload)
SELECT id, lane, 'cancelled', due_ms, because, fence, version + 1, attempt, attempts_before, takeovers,
       takeovers_counted, settled_by, settled_fence, created_ms, deadline_ms, attempts_max,
       attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
       failure_message, $2, $3, payload
  FROM gone;
