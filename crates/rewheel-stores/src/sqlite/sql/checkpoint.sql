-- checkpoint: replaces the payload of a leased job. Contract: WorkStore::checkpoint.
UPDATE jobs SET payload = ?4, version = version + 1 WHERE id = ?1 AND state = 'leased' AND +holder = ?2 AND fence = ?3;
