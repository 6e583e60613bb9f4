-- redrive: moves dead letters $1 back to the hot table, due at $2, with deadlines $3 and with their history.
WITH gone AS (
    DELETE FROM rewheel.dead USING unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS given (id, due_ms, deadline_ms)
     WHERE dead.id = given.id
    RETURNING dead.*, given.due_ms AS new_due_ms, given.deadline_ms AS new_deadline_ms
)
INSERT INTO rewheel.jobs ({moved}, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                          takeovers_counted, settled_by, settled_fence, deadline_ms, failure_category, failure_code,
                          failure_message)
SELECT {moved}, 'scheduled', new_due_ms, 'person', fence, version + 1, attempt, attempt, takeovers,
       takeovers_counted, settled_by, settled_fence, new_deadline_ms, failure_category, failure_code,
       failure_message
  FROM gone
RETURNING lane, due_ms;
