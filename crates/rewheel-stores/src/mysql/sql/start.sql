-- start: records that a job starts. Contract: WorkStore::start.
UPDATE rewheel_jobs FORCE INDEX (id) SET started_fence = fence WHERE id = ? AND state = 1 AND holder = ? AND fence = ?;
