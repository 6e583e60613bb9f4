-- sample_now: counts live jobs and dead letters, up to ?1. Contract: SampleStore::sample_now.
SELECT (SELECT count(*) FROM (SELECT 1 FROM jobs LIMIT ?1)) + (SELECT count(*) FROM (SELECT 1 FROM dead LIMIT ?1));
