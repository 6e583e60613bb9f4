-- end_finished: stores a live job as finished with state ?2, kept until ?10. The caller deletes it from the hot table. A job that
-- is taken from its holder gets a larger fence, as in any takeover.
INSERT INTO finished (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                      settled_by, settled_fence, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff,
                      key, shard_key, traceparent, failure_category, failure_code, failure_message,
                      ended_ms, expires_ms, payload)
SELECT id, lane, ?2, due_ms, because, fence + (state = 'leased' AND ?5 IS NULL), version + 1, ?3, attempts_before, ?4, ?11,
       coalesce(?5, settled_by), CASE WHEN ?5 IS NULL THEN settled_fence ELSE fence END,
       created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff,
       key, shard_key, traceparent,
       coalesce(?6, failure_category), CASE WHEN ?6 IS NULL THEN failure_code ELSE ?7 END, coalesce(?8, failure_message),
       ?9, ?10, payload
  FROM jobs WHERE seq = ?1;
