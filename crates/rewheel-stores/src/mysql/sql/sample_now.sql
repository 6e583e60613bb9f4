-- sample_now: counts live jobs and dead letters, up to a number of each. Contract: SampleStore::sample_now.
SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM rewheel_jobs LIMIT ?) AS live) + (SELECT COUNT(*) FROM (SELECT 1 FROM rewheel_dead LIMIT ?) AS dead)
