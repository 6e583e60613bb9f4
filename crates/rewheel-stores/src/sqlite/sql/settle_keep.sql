-- settle_keep: job ?1 succeeded, and is kept until ?5; settled by ?2, now ?4. The caller deletes it from the hot table.
INSERT INTO finished (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                      settled_by, settled_fence, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff,
                      key, shard_key, traceparent, failure_category, failure_code, failure_message,
                      ended_ms, expires_ms, payload)
SELECT id, lane, 'succeeded', due_ms, because, fence, version + 1, attempt + 1, attempts_before, takeovers, takeovers_counted,
       ?2, ?3, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff,
       key, shard_key, traceparent, failure_category, failure_code, failure_message,
       ?4, ?5, payload
  FROM jobs WHERE seq = ?1;
