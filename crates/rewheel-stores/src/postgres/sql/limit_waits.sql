-- limit_waits: the time, and for each limit, in the order given: when a job was last started under it, and how many jobs are leased.
-- $1 moves the clock; $2 and $3 name the limits; $4 says which of them count leases. Contract: ReadStore::limit_waits.
-- Looks at the leased jobs only, once for all limits: those on the shelf `held`, and those of listed claims that are still on the
-- shelf `due`. Steps from one holder to the next in the index, as the sweep.
WITH RECURSIVE step (holder) AS (
    SELECT (SELECT held_by FROM rewheel.jobs WHERE shelf = 'held' AND held_by IS NOT NULL ORDER BY held_by LIMIT 1)
    UNION ALL
    SELECT (SELECT held_by FROM rewheel.jobs WHERE shelf = 'held' AND held_by > step.holder ORDER BY held_by LIMIT 1)
      FROM step WHERE step.holder IS NOT NULL
),
-- A job may be on two lists: it was given back and claimed again.
listed AS MATERIALIZED (SELECT DISTINCT id FROM rewheel.claims, unnest(claims.jobs) AS id),
leased AS MATERIALIZED (
    SELECT lane, count(*) AS jobs
      FROM (SELECT job.lane
              FROM step, LATERAL (SELECT lane FROM rewheel.jobs WHERE shelf = 'held' AND held_by = step.holder OFFSET 0) AS job
            UNION ALL
            -- Nothing is looked for but the id.
            SELECT job.lane
              FROM listed, LATERAL (SELECT lane, shelf, state FROM rewheel.jobs WHERE jobs.id = listed.id OFFSET 0) AS job
             WHERE job.shelf = 'due' AND job.state = 'leased') AS every
     GROUP BY lane
),
named AS MATERIALIZED (
    SELECT lane.kind, lane.tenant, leased.jobs
      FROM leased, LATERAL (SELECT kind, tenant FROM rewheel.lanes WHERE lanes.lane = leased.lane OFFSET 0) AS lane
)
SELECT rewheel.now_ms() + $1,
       (SELECT last_ms FROM rewheel.limits WHERE limits.scope = given.scope AND limits.name = given.name),
       CASE WHEN given.counts
            THEN (SELECT coalesce(sum(jobs), 0)::bigint FROM named
                   WHERE CASE given.scope WHEN 'kind' THEN kind ELSE tenant END = given.name)
            ELSE 0 END
  FROM unnest($2::text[], $3::text[], $4::boolean[]) WITH ORDINALITY AS given (scope, name, counts, nth)
 ORDER BY nth;
