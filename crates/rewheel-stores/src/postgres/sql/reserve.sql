-- reserve: counts the live jobs of tenant $1, up to $2, and the room that other holders have reserved for it. Contract:
-- SubmitStore::reserve. Indexes: lanes_tenant, jobs_due, jobs_paused, jobs_blocked, and jobs_held, whose rows are limited by the
-- concurrency of the holders.
-- $3 and $4 are lanes in the order of their numbers, and their floors: the due time below which only jobs of listed claims are counted.
-- $5 and $6 are the time up to which a full read found nothing to take over, and the first list then, as in limit_waits. $7 is the clock offset.
-- These say where to start, so that the count does not read dead rows.
WITH RECURSIVE start AS MATERIALIZED (
    -- After the clock was put back, new leases may end before $5.
    SELECT CASE WHEN rewheel.now_ms() + $7 < $5 THEN -9223372036854775808 ELSE $5 END AS from_ms
),
mine AS MATERIALIZED (
    SELECT lane, coalesce(CASE WHEN ($3::int[])[width_bucket(lane, $3)] = lane
                               THEN ($4::bigint[])[width_bucket(lane, $3)] END, -9223372036854775808) AS floor
      FROM rewheel.lanes WHERE tenant = $1
),
-- From the very beginning: steps from one holder to the next in the index, as the sweep does.
step (holder) AS (
    SELECT (SELECT held_by FROM rewheel.jobs
             WHERE shelf = 'held' AND held_by IS NOT NULL AND (SELECT from_ms FROM start) = -9223372036854775808
             ORDER BY held_by LIMIT 1)
    UNION ALL
    SELECT (SELECT held_by FROM rewheel.jobs WHERE shelf = 'held' AND held_by > step.holder ORDER BY held_by LIMIT 1)
      FROM step WHERE step.holder IS NOT NULL
),
holding AS MATERIALIZED (
    SELECT step.holder, -9223372036854775808 AS from_ms FROM step WHERE step.holder IS NOT NULL
    UNION ALL
    SELECT holders.seq, CASE WHEN died_ms IS NULL THEN from_ms ELSE -9223372036854775808 END
      FROM rewheel.holders, start
     WHERE from_ms > -9223372036854775808 AND (died_ms IS NULL OR died_ms >= from_ms)
)
SELECT (SELECT count(*) FROM (
            SELECT FROM mine, LATERAL (SELECT FROM rewheel.jobs
                                        WHERE shelf = 'due' AND jobs.lane = mine.lane AND due_ms >= mine.floor OFFSET 0) AS job
            UNION ALL
            -- The plan looks up rows by id only.
            SELECT FROM (SELECT DISTINCT id FROM rewheel.claims, unnest(claims.jobs) AS id
                          WHERE claims.seq >= $6 AND cardinality($3::int[]) > 0) AS list,
                        LATERAL (SELECT lane, shelf, state, due_ms FROM rewheel.jobs WHERE jobs.id = list.id OFFSET 0) AS job
                        JOIN mine USING (lane)
             WHERE job.shelf = 'due' AND job.state = 'leased' AND job.due_ms < mine.floor
            UNION ALL
            SELECT FROM holding,
                        LATERAL (SELECT FROM rewheel.jobs
                                  WHERE shelf = 'held' AND held_by = holding.holder AND held_until_ms >= holding.from_ms
                                    -- `IS TRUE` keeps it a lookup in memory; a join could read these jobs for each lane.
                                    AND (jobs.lane IN (SELECT lane FROM mine)) IS TRUE OFFSET 0) AS job
            UNION ALL
            SELECT FROM mine JOIN rewheel.jobs USING (lane) WHERE shelf = 'paused'
            UNION ALL
            SELECT FROM mine JOIN rewheel.jobs USING (lane) WHERE shelf = 'blocked'
            UNION ALL
            SELECT FROM rewheel.unreadable,
                        LATERAL (SELECT lane, shelf FROM rewheel.jobs WHERE jobs.id = unreadable.job OFFSET 0) AS job
                        JOIN mine USING (lane)
             WHERE job.shelf = 'unreadable'
            LIMIT $2) AS live),
       (SELECT coalesce(sum(jobs), 0)::bigint FROM rewheel.reserved WHERE tenant = $1);
