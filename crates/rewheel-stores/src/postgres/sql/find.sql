-- find: reads the jobs $1 from any table, in one snapshot. Contract: ReadStore::find.
SELECT {live_job_without_payload} FROM rewheel.jobs WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT {ended_job_without_payload} FROM rewheel.dead WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT {ended_job_without_payload} FROM rewheel.finished WHERE id = ANY ($1::uuid[]);
