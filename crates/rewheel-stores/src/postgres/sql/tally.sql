-- tally: counts jobs of each kind by shelf. Contract: ReadStore::tally. Each branch is an index-only scan, except for `listed` and
-- `held`, whose number is limited by the concurrency of the holders. A leased job that is listed in `claims` is still on the shelf `due`.
SELECT kind, shelf, sum(jobs)::bigint, min(due_ms)
  FROM (SELECT lane, 'due' AS shelf, count(*) AS jobs, min(due_ms) AS due_ms FROM rewheel.jobs WHERE shelf = 'due' GROUP BY lane
        UNION ALL
        SELECT job.lane, 'listed', count(*), NULL
          FROM (SELECT DISTINCT unnest(claims.jobs) AS id FROM rewheel.claims) AS listed,
               LATERAL (SELECT lane, shelf, state FROM rewheel.jobs WHERE jobs.id = listed.id OFFSET 0) AS job
         WHERE job.shelf = 'due' AND job.state = 'leased' GROUP BY job.lane
        UNION ALL
        SELECT lane, 'held', count(*), NULL FROM rewheel.jobs WHERE shelf = 'held' GROUP BY lane
        UNION ALL
        SELECT lane, 'paused', count(*), NULL FROM rewheel.jobs WHERE shelf = 'paused' GROUP BY lane
        UNION ALL
        SELECT lane, 'blocked', count(*), NULL FROM rewheel.jobs WHERE shelf = 'blocked' GROUP BY lane
        UNION ALL
        SELECT lane, 'dead', count(*), NULL FROM rewheel.dead GROUP BY lane) AS counted
  JOIN rewheel.lanes USING (lane)
 GROUP BY kind, shelf;
