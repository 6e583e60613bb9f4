-- lane_head: reads the earliest due time of the scheduled jobs of lane ?1. Contract: WorkStore::lane_heads.
SELECT due_ms FROM jobs INDEXED BY jobs_due WHERE state = 'scheduled' AND lane = ?1 ORDER BY due_ms LIMIT 1;
