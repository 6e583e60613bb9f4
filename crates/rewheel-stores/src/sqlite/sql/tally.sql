-- tally: counts jobs of each kind by state. Contract: ReadStore::tally. Each branch is an index-only scan, except for leased jobs, whose
-- number is limited by the concurrency of the holders.
SELECT kind, state, sum(jobs), min(due_ms)
  FROM (SELECT lane, 'scheduled' AS state, count(*) AS jobs, min(due_ms) AS due_ms
          FROM jobs INDEXED BY jobs_due WHERE state = 'scheduled' GROUP BY lane
        UNION ALL
        SELECT lane, 'leased', count(*), NULL FROM jobs INDEXED BY jobs_held WHERE state = 'leased' GROUP BY lane
        UNION ALL
        SELECT lane, 'paused', count(*), NULL FROM jobs INDEXED BY jobs_paused WHERE state = 'paused' GROUP BY lane
        UNION ALL
        SELECT lane, 'scheduled', count(*), NULL FROM jobs INDEXED BY jobs_blocked WHERE state = 'blocked' GROUP BY lane
        UNION ALL
        SELECT lane, 'dead', count(*), NULL FROM dead INDEXED BY dead_lane GROUP BY lane) AS counted
  JOIN lanes USING (lane)
 GROUP BY kind, state;
