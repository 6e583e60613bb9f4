-- reserve: counts the live jobs of tenant ?1, up to ?2, and the room that other holders have reserved for it. Contract:
-- SubmitStore::reserve. Uses indexes only, except for leased jobs, whose number is limited by the concurrency of the holders.
SELECT (SELECT count(*) FROM (
            SELECT 1 FROM lanes CROSS JOIN jobs INDEXED BY jobs_due ON jobs.lane = lanes.lane
             WHERE lanes.tenant = ?1 AND jobs.state = 'scheduled'
            UNION ALL
            SELECT 1 FROM jobs INDEXED BY jobs_held CROSS JOIN lanes ON lanes.lane = jobs.lane
             WHERE lanes.tenant = ?1 AND jobs.state = 'leased'
            UNION ALL
            SELECT 1 FROM lanes CROSS JOIN jobs INDEXED BY jobs_paused ON jobs.lane = lanes.lane
             WHERE lanes.tenant = ?1 AND jobs.state = 'paused'
            UNION ALL
            SELECT 1 FROM lanes CROSS JOIN jobs INDEXED BY jobs_blocked ON jobs.lane = lanes.lane
             WHERE lanes.tenant = ?1 AND jobs.state = 'blocked'
            LIMIT ?2)),
       (SELECT coalesce(sum(jobs), 0) FROM reserved WHERE tenant = ?1);
