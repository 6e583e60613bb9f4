-- redrive: moves dead letters $1 back to the hot table, due at $2, with deadlines $3 and with their history.
WITH gone AS (
    DELETE FROM rewheel.dead USING unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS given (id, due_ms, deadline_ms)
     WHERE dead.id = given.id
    RETURNING dead.*, given.due_ms AS new_due_ms, given.deadline_ms AS new_deadline_ms
)
INSERT INTO rewheel.jobs (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                          takeovers_counted, settled_by, settled_fence, created_ms, deadline_ms, attempts_max,
                          attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
                          failure_message, payload)
SELECT id, lane, 'scheduled', new_due_ms, 'person', fence, version + 1, attempt, attempt, takeovers,
       takeovers_counted, settled_by, settled_fence, created_ms, new_deadline_ms, attempts_max,
       attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
       failure_message, payload
  FROM gone
RETURNING lane, due_ms;
