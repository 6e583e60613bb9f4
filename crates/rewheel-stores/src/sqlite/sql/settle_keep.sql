-- settle_keep: a success that is kept, until ?5; now ?4. The caller deletes the row that is returned.
INSERT OR FAIL INTO finished (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                      settled_by, settled_fence, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff,
                      key, shard_key, traceparent, failure_category, failure_code, failure_message,
                      ended_ms, expires_ms, payload)
SELECT id, lane, 'succeeded', due_ms, because, fence, version + 1, attempt + 1, attempts_before, takeovers, takeovers_counted,
       ?2, ?3, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff,
       key, shard_key, traceparent, failure_category, failure_code, failure_message,
       ?4, ?5, payload
  FROM jobs WHERE id = ?1 AND state = 'leased' AND +holder = ?2 AND fence = ?3
RETURNING lane, key;
