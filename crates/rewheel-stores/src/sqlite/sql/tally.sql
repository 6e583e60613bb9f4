-- tally: jobs of each lane by state. Contract: ReadStore::tally. Each arm is answered by an index alone.
SELECT lane, 'scheduled', count(*), min(due_ms) FROM jobs INDEXED BY jobs_due WHERE state = 'scheduled' GROUP BY lane
UNION ALL
SELECT lane, state, count(*), NULL FROM jobs WHERE state <> 'scheduled' GROUP BY lane, state
UNION ALL
SELECT lane, 'dead', count(*), NULL FROM dead INDEXED BY dead_lane GROUP BY lane;
