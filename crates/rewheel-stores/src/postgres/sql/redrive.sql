-- redrive: moves dead letters $1 back to the hot table, due at $2, with deadlines $3 and with their history. A job of a
-- group has the place in line that it had.
WITH gone AS (
    DELETE FROM rewheel.dead USING unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS given (id, due_ms, deadline_ms)
     WHERE dead.id = given.id
    RETURNING dead.*, given.due_ms AS new_due_ms, given.deadline_ms AS new_deadline_ms
),
back AS (UPDATE rewheel.group_members SET dead = false FROM gone WHERE gone.group_key IS NOT NULL AND group_members.job = gone.id)
INSERT INTO rewheel.jobs ({moved}, shelf, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                          takeovers_counted, settled_by, settled_fence, deadline_ms, failure_category, failure_code,
                          failure_message)
SELECT {moved},
       CASE WHEN group_key IS NULL OR EXISTS (SELECT FROM rewheel.group_heads AS head WHERE head.job = gone.id) THEN 'due'
            ELSE 'blocked' END,
       'scheduled', new_due_ms, 'person', fence, version + 1, attempt, attempt, takeovers,
       takeovers_counted, settled_by, settled_fence, new_deadline_ms, failure_category, failure_code,
       failure_message
  FROM gone
RETURNING lane, due_ms;
