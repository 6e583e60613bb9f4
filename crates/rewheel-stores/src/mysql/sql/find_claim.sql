-- find_claim: reads the claim, the holder and the place of a job.
SELECT claim, holder, place FROM rewheel_jobs FORCE INDEX (id) WHERE id = ? FOR UPDATE;
