-- ended: returns those of jobs ?1 that are not in the hot table. Contract: ReadStore::ended.
SELECT value FROM rarray(?1) WHERE NOT EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_id WHERE jobs.id = value);
