-- checkpoint: replaces the payload of a leased job. Contract: WorkStore::checkpoint.
UPDATE rewheel_jobs FORCE INDEX (id) SET payload = ?, version = version + 1 WHERE id = ? AND state = 1 AND holder = ? AND fence = ?;
