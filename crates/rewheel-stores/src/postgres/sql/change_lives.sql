-- change_lives: writes the changes that the caller decided in this transaction to live jobs $1: state, due time, its reason, deadline and
-- what an operator wants. Contract: OperateStore::change.
UPDATE rewheel.jobs SET state = given.state, due_ms = given.due_ms, because = given.because, deadline_ms = given.deadline_ms,
                        wanted = given.wanted, version = version + 1,
                        shelf = CASE given.state WHEN 'scheduled'
                                               THEN CASE WHEN group_key IS NULL OR EXISTS (SELECT FROM rewheel.group_heads AS head WHERE head.job = jobs.id)
                                                    THEN 'due' ELSE 'blocked' END
                                               WHEN 'leased' THEN 'held' ELSE given.state END,
                        held_by = CASE given.state WHEN 'leased' THEN holder END,
                        held_until_ms = CASE given.state WHEN 'leased' THEN overdue_ms END
  FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[])
       AS given (id, state, due_ms, because, deadline_ms, wanted)
 WHERE jobs.id = given.id
RETURNING lane, jobs.due_ms;
