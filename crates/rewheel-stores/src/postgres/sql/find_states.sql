-- find_states: reads the states of jobs from all tables.
SELECT id, state FROM rewheel.jobs WHERE id = ANY ($1::uuid[])
UNION ALL SELECT id, state FROM rewheel.dead WHERE id = ANY ($1::uuid[])
UNION ALL SELECT id, state FROM rewheel.finished WHERE id = ANY ($1::uuid[]);
