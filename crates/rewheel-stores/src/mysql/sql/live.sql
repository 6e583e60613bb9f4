-- live: reads the live jobs among the given ones. Contract: ReadStore::live.
SELECT {live_job_without_payload} FROM rewheel_jobs jobs FORCE INDEX (id) WHERE jobs.id IN ({list});
