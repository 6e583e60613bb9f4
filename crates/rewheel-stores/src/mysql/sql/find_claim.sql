-- find_claim: reads the claim of a job.
SELECT claim FROM rewheel_jobs FORCE INDEX (id) WHERE id = ? FOR UPDATE;
