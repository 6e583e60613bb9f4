-- get_live: reads one live job. Contract: ReadStore::get.
SELECT {live_job} FROM rewheel_jobs jobs FORCE INDEX (id) WHERE jobs.id = ?;
