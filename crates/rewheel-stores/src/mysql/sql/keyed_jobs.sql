-- keyed_jobs: reads the jobs that keys belong to. Contract: ReadStore::list.
SELECT job FROM rewheel_keys FORCE INDEX (PRIMARY) WHERE name IN ({list}) AND (expires_ms IS NULL OR expires_ms > ?);
