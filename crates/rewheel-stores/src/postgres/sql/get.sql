-- get: reads one job from any table, in one snapshot. Contract: ReadStore::get.
SELECT {live_job} FROM rewheel.jobs WHERE id = $1
UNION ALL
SELECT {ended_job} FROM rewheel.dead WHERE id = $1
UNION ALL
SELECT {ended_job} FROM rewheel.finished WHERE id = $1;
