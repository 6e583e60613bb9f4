-- release: makes jobs ($3 to $6: group, kind, tenant, job), which `group_next` has locked, the heads of their lines, now $1. If another
-- transaction gave a line a head meanwhile, its job stays as it is. A job that was blocked is due now at the earliest, except for jobs $2,
-- which were just inserted and are sorted; a paused job stays paused. Returns each job that is a head now with its turn, and, for live ones, lane and due
-- time. In the order of the lines, so that two transactions cannot deadlock.
WITH head AS (
    INSERT INTO rewheel.group_heads (group_key, kind, tenant, job)
    SELECT * FROM unnest($3::text[], $4::text[], $5::text[], $6::uuid[]) AS given (group_key, kind, tenant, job)
     ORDER BY group_key COLLATE "C", kind COLLATE "C", tenant COLLATE "C"
    ON CONFLICT DO NOTHING
    -- The turn is read when the row is in the table, after that of every earlier head of the line. $7 is the largest turn that the caller
    -- has seen: the clock may have gone back.
    RETURNING job, greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $7 + 1) AS turn
),
letter AS (
    UPDATE rewheel.dead SET turn = head.turn
      FROM head, LATERAL (SELECT dead.ctid AS place FROM rewheel.dead WHERE dead.id = head.job OFFSET 0) AS found
     WHERE dead.ctid = found.place
),
live AS (
    UPDATE rewheel.jobs
       SET turn = head.turn,
           due_ms = CASE WHEN shelf = 'blocked' AND ($2::uuid[])[width_bucket(jobs.id, $2)] IS DISTINCT FROM jobs.id
                         THEN greatest(due_ms, $1) ELSE due_ms END,
           shelf = CASE shelf WHEN 'blocked' THEN 'due' ELSE shelf END
      FROM head, LATERAL (SELECT jobs.ctid AS place FROM rewheel.jobs WHERE jobs.id = head.job OFFSET 0) AS found
     WHERE jobs.ctid = found.place
    RETURNING jobs.lane, jobs.due_ms
)
SELECT job, turn, NULL::int, NULL::bigint FROM head
UNION ALL
SELECT NULL, NULL, lane, due_ms FROM live;
