-- list_live: reads the hot table, from the newest id. Contract: ReadStore::list.
SELECT {live_job_without_payload} FROM rewheel_jobs jobs FORCE INDEX (id) WHERE jobs.id < ? ORDER BY jobs.id DESC LIMIT ?;
