-- insert_grouped: stores new jobs of groups, their places in line, and their line in the ledger. Contract: SubmitStore::insert. As
-- `insert_many`, but the jobs wait on the shelf `blocked` until they are released. The places are in the order of the jobs.
WITH clock AS MATERIALIZED (SELECT coalesce($2, rewheel.now_ms() + $1) AS now),
known AS MATERIALIZED (
    SELECT count(*) = cardinality($3) AS correct FROM rewheel.lanes JOIN rewheel.kinds ON kinds.name = lanes.kind
     WHERE lanes.lane = ANY ($3)
       AND lanes.kind = ($4::text[])[width_bucket(lanes.lane, $3)] AND tenant = ($5::text[])[width_bucket(lanes.lane, $3)]
       AND priority = ($6::int[])[width_bucket(lanes.lane, $3)] AND shard = ($7::int[])[width_bucket(lanes.lane, $3)]
),
stored AS (
    INSERT INTO rewheel.jobs ({submitted}, state, shelf, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                              takeovers_counted, created_ms, deadline_ms)
    SELECT {submitted}, 'scheduled', 'blocked', due, 'submitted', 0, 1, coalesce(attempts_made, 0), coalesce(attempts_made, 0), 0,
           0, now, deadline
      FROM (SELECT given.*, now,
                   coalesce(due_at, rewheel.later(now, due_in)) AS due,
                   CASE WHEN deadline_in IS NULL THEN deadline_at ELSE rewheel.later(now, deadline_in) END AS deadline
              FROM clock, {new_jobs}) AS job
     WHERE (deadline IS NULL OR (deadline > now AND deadline >= due)) AND (SELECT correct FROM known)
    RETURNING id, lane, group_key, seq
),
placed AS (
    INSERT INTO rewheel.group_members (job, group_key, kind, tenant)
    SELECT stored.id, stored.group_key, ($4::text[])[width_bucket(stored.lane, $3)], ($5::text[])[width_bucket(stored.lane, $3)]
      FROM stored ORDER BY stored.seq
),
line AS (
    INSERT INTO rewheel.ledger (at_ms, submitted, pruned)
    SELECT now, submitted, 0 FROM clock, (SELECT count(*) AS submitted FROM stored) AS counted WHERE submitted > 0
)
SELECT now, ARRAY[]::int[], (SELECT correct FROM known) FROM clock;
