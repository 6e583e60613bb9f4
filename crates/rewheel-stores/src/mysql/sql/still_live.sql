-- still_live: returns those of given jobs that are live. Reads the index only. Contract: ReadStore::ended.
SELECT id FROM rewheel_jobs FORCE INDEX (id) WHERE id IN ({list})
