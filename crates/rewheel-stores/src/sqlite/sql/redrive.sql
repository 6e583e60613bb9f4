-- redrive: stores dead letter ?1 in the hot table, due at ?2, with deadline ?3 and with its history. The caller deletes it from the dead
-- letters.
INSERT INTO jobs (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                  settled_by, settled_fence, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff,
                  key, shard_key, traceparent, failure_category, failure_code, failure_message, payload)
SELECT id, lane, 'scheduled', ?2, 'person', fence, version + 1, attempt, attempt, takeovers, takeovers_counted,
       settled_by, settled_fence, created_ms, ?3, attempts_max, attempt_timeout_ms, backoff,
       key, shard_key, traceparent, failure_category, failure_code, failure_message, payload
  FROM dead WHERE id = ?1;
