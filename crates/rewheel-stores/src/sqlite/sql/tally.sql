-- tally: jobs of each lane by state. Contract: ReadStore::tally. Each arm is answered by an index alone, but for the leased,
-- which are no more than the holders have places for.
SELECT lane, 'scheduled', count(*), min(due_ms) FROM jobs INDEXED BY jobs_due WHERE state = 'scheduled' GROUP BY lane
UNION ALL
SELECT lane, 'leased', count(*), NULL FROM jobs INDEXED BY jobs_held WHERE state = 'leased' GROUP BY lane
UNION ALL
SELECT lane, 'paused', count(*), NULL FROM jobs INDEXED BY jobs_paused WHERE state = 'paused' GROUP BY lane
UNION ALL
SELECT lane, 'dead', count(*), NULL FROM dead INDEXED BY dead_lane GROUP BY lane;
