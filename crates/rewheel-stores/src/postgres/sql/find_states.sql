-- find_states: where jobs are, whichever table they are in.
SELECT id, state FROM rewheel.jobs WHERE id = ANY ($1::uuid[])
UNION ALL SELECT id, state FROM rewheel.dead WHERE id = ANY ($1::uuid[])
UNION ALL SELECT id, state FROM rewheel.finished WHERE id = ANY ($1::uuid[]);
