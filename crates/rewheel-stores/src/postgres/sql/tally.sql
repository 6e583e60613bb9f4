-- tally: jobs of each lane by state. Contract: ReadStore::tally.
SELECT lane, state, count(*), min(due_ms) FILTER (WHERE state = 'scheduled') FROM rewheel.jobs GROUP BY lane, state
UNION ALL
SELECT lane, 'dead', count(*), NULL FROM rewheel.dead GROUP BY lane;
