-- insert: stores new jobs and their line in the ledger. Contract: SubmitStore::insert.
-- $1 is the clock offset; $2 the time, if the transaction has read it already. $3 is the holder of the direct path, if any, $4 the
-- attempt timeout of jobs without their own, $5 the grace. $6 and $7 are the floors of lanes. $8 to $12 are the lanes of the jobs, each
-- once in the order of their numbers, with kind, tenant, priority and shard. The jobs follow, one array for each column that this form
-- of the statement takes; an array that is shorter than the first counts as NULL from there on. Nothing is stored unless all lanes are
-- correct. A job whose deadline is too early is left out; the caller computes from the returned time which jobs those are.
WITH clock AS MATERIALIZED (SELECT coalesce($2, rewheel.now_ms() + $1) AS now),
holder AS MATERIALIZED (SELECT seq FROM rewheel.holders WHERE id = $3 AND died_ms IS NULL FOR KEY SHARE),
job AS MATERIALIZED (
    SELECT given.*, now,
           coalesce(due_at, rewheel.later(now, due_in)) AS due,
           CASE WHEN deadline_in IS NULL THEN deadline_at ELSE rewheel.later(now, deadline_in) END AS deadline
      FROM clock, {new_jobs}
),
-- Nodes cache lane numbers. Meanwhile the kind may have been deleted. After a restore from a backup, or on a standby that lagged, a
-- number may belong to another lane or to none.
known AS MATERIALIZED (
    SELECT count(*) = cardinality($8) AS correct FROM rewheel.lanes JOIN rewheel.kinds ON kinds.name = lanes.kind
     WHERE lanes.lane = ANY ($8)
       AND lanes.kind = ($9::text[])[width_bucket(lanes.lane, $8)] AND tenant = ($10::text[])[width_bucket(lanes.lane, $8)]
       AND priority = ($11::int[])[width_bucket(lanes.lane, $8)] AND shard = ($12::int[])[width_bucket(lanes.lane, $8)]
),
-- Lanes of open kinds without a due job: a new job overtakes no other there.
open AS MATERIALIZED (
    SELECT named.lane
      FROM (SELECT DISTINCT lane FROM job WHERE EXISTS (SELECT FROM holder)) AS named
     WHERE (SELECT NOT paused AND parked_ms IS NULL FROM rewheel.lanes JOIN rewheel.kinds ON kinds.name = lanes.kind
             WHERE lanes.lane = named.lane)
       -- Not EXISTS: the planner could turn it into a join and scan the jobs of every lane.
       AND (SELECT 1 FROM rewheel.jobs
             WHERE shelf = 'due' AND state = 'scheduled' AND jobs.lane = named.lane AND due_ms <= (SELECT now FROM clock)
               AND due_ms >= coalesce((SELECT floor FROM unnest($6::int[], $7::bigint[]) AS given (lane, floor)
                                        WHERE given.lane = named.lane), -9223372036854775808) LIMIT 1) IS NULL
),
-- As in a claim: no fence of an earlier epoch is given again. It is read only if a job is leased.
epoch AS MATERIALIZED (SELECT rewheel.fence_floor() AS floor),
stored AS (
    INSERT INTO rewheel.jobs ({submitted}, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                              takeovers_counted, shelf, held_by, held_until_ms, holder, leased_ms, overdue_ms, created_ms, deadline_ms)
    SELECT {submitted}, CASE WHEN direct THEN 'leased' ELSE 'scheduled' END, due, 'submitted',
           CASE WHEN direct THEN (SELECT floor FROM epoch) + 1 ELSE 0 END, 1,
           coalesce(attempts_made, 0), coalesce(attempts_made, 0), 0, 0,
           CASE WHEN direct THEN 'held' ELSE 'due' END, CASE WHEN direct THEN (SELECT seq FROM holder) END, overdue,
           CASE WHEN direct THEN (SELECT seq FROM holder) END, CASE WHEN direct THEN now END, overdue,
           now, deadline
      FROM (SELECT *, CASE WHEN direct THEN rewheel.later(rewheel.later(now, coalesce(attempt_timeout_ms, $4)), $5) END AS overdue
              FROM (SELECT *, due <= now AND lane IN (SELECT lane FROM open) AS direct FROM job) AS job) AS job
     WHERE (deadline IS NULL OR (deadline > now AND deadline >= due)) AND (SELECT correct FROM known)
    RETURNING 1
),
line AS (
    INSERT INTO rewheel.ledger (at_ms, submitted, pruned)
    SELECT now, submitted, 0 FROM clock, (SELECT count(*) AS submitted FROM stored) AS counted WHERE submitted > 0
)
SELECT now, ARRAY (SELECT lane FROM open), (SELECT correct FROM known),
       CASE WHEN EXISTS (SELECT FROM open) THEN (SELECT floor FROM epoch) + 1 END
  FROM clock;
