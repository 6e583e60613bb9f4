-- start: records that a job starts. Contract: WorkStore::start.
UPDATE jobs SET started_fence = fence WHERE id = ?1 AND state = 'leased' AND +holder = ?2 AND fence = ?3;
