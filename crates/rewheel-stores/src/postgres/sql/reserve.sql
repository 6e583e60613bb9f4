-- reserve: counts the live jobs of tenant $1, up to $2, and the room that other holders have reserved for it. Contract:
-- SubmitStore::reserve. Indexes: lanes_tenant, jobs_due, jobs_paused, jobs_blocked, and jobs_held, whose rows are limited by the concurrency of the
-- holders.
WITH mine AS MATERIALIZED (SELECT lane FROM rewheel.lanes WHERE tenant = $1)
SELECT (SELECT count(*) FROM (
            SELECT FROM mine JOIN rewheel.jobs USING (lane) WHERE shelf = 'due'
            UNION ALL
            SELECT FROM mine JOIN rewheel.jobs USING (lane) WHERE shelf = 'held'
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
