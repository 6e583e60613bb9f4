-- limit_waits: reads the time and, for each limit in the given order, when a job was last started under it and how many jobs are leased.
-- $1 is the clock offset; $2 and $3 name the limits; $4 is the concurrency of each. Contract: ReadStore::limit_waits.
-- Reads leased jobs only, once for all limits: those on the shelf `held`, and, for limits that those do not fill, the jobs of listed
-- claims that are still on the shelf `due`.
-- $5 is the time up to which a full read found nothing to take over, and $6 the first list then, as in sweep_look: no job of a living holder
-- became overdue before, and no holder that died before has jobs. So the count does not read dead rows from before that time.
WITH RECURSIVE start AS MATERIALIZED (
    -- After the clock was put back, new leases may end before $5.
    SELECT CASE WHEN rewheel.now_ms() + $1 < $5 THEN -9223372036854775808 ELSE $5 END AS from_ms
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
),
held AS MATERIALIZED (
    SELECT lane.kind, lane.tenant, jobs
      FROM (SELECT job.lane, count(*) AS jobs
              FROM holding,
                   LATERAL (SELECT lane FROM rewheel.jobs
                             WHERE shelf = 'held' AND held_by = holding.holder AND held_until_ms >= holding.from_ms OFFSET 0) AS job
             GROUP BY job.lane) AS leased,
           LATERAL (SELECT kind, tenant FROM rewheel.lanes WHERE lanes.lane = leased.lane OFFSET 0) AS lane
),
-- A job may be on two lists: it was given back and claimed again. The plan looks up rows by id only.
listed AS MATERIALIZED (
    SELECT lane.kind, lane.tenant, jobs
      FROM (SELECT job.lane, count(*) AS jobs
              FROM (SELECT DISTINCT id FROM rewheel.claims, unnest(claims.jobs) AS id WHERE claims.seq >= $6) AS list,
                   LATERAL (SELECT lane, shelf, state FROM rewheel.jobs WHERE jobs.id = list.id OFFSET 0) AS job
             WHERE job.shelf = 'due' AND job.state = 'leased'
             GROUP BY job.lane) AS leased,
           LATERAL (SELECT kind, tenant FROM rewheel.lanes WHERE lanes.lane = leased.lane OFFSET 0) AS lane
)
SELECT rewheel.now_ms() + $1,
       (SELECT last_ms FROM rewheel.limits WHERE limits.scope = given.scope AND limits.name = given.name),
       CASE WHEN given.most IS NULL THEN 0
            ELSE (SELECT CASE WHEN filled.jobs >= given.most THEN filled.jobs
                              ELSE filled.jobs + (SELECT coalesce(sum(listed.jobs), 0)::bigint FROM listed
                                                   WHERE CASE given.scope WHEN 'kind' THEN kind ELSE tenant END = given.name) END
                    FROM (SELECT coalesce(sum(held.jobs), 0)::bigint AS jobs FROM held
                           WHERE CASE given.scope WHEN 'kind' THEN kind ELSE tenant END = given.name OFFSET 0) AS filled)
       END
  FROM unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS given (scope, name, most, nth)
 ORDER BY nth;
