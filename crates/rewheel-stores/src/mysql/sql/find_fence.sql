-- find_fence: reads and locks the fence of a live job.
SELECT fence FROM rewheel_jobs FORCE INDEX (id) WHERE id = ? FOR UPDATE;
