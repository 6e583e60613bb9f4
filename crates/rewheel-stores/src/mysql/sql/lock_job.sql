-- lock_job: reads and locks one live job.
SELECT {live_job} FROM rewheel_jobs jobs FORCE INDEX (id) WHERE jobs.id = ? FOR UPDATE;
