-- reserve: how many jobs of tenant ?1 live, counted up to ?2, and how much room others have set aside for it.
-- Contract: SubmitStore::reserve. Answered by indexes, but for the leased, which are no more than the holders have places for.
SELECT (SELECT count(*) FROM (
            SELECT 1 FROM lanes CROSS JOIN jobs INDEXED BY jobs_due ON jobs.lane = lanes.lane
             WHERE lanes.tenant = ?1 AND jobs.state = 'scheduled'
            UNION ALL
            SELECT 1 FROM jobs INDEXED BY jobs_held CROSS JOIN lanes ON lanes.lane = jobs.lane
             WHERE lanes.tenant = ?1 AND jobs.state = 'leased'
            UNION ALL
            SELECT 1 FROM lanes CROSS JOIN jobs INDEXED BY jobs_paused ON jobs.lane = lanes.lane
             WHERE lanes.tenant = ?1 AND jobs.state = 'paused'
            LIMIT ?2)),
       (SELECT coalesce(sum(jobs), 0) FROM reserved WHERE tenant = ?1);
