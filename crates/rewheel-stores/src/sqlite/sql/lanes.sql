-- lanes: reads the lanes of kind ?1 after (?2, ?3, ?4) that have scheduled jobs, with the earliest due time. Contract: WorkStore::lanes.
SELECT lane, tenant, priority, shard,
       (SELECT due_ms FROM jobs INDEXED BY jobs_due
         WHERE state = 'scheduled' AND lane = lanes.lane ORDER BY due_ms LIMIT 1) AS due_ms
  FROM lanes
 WHERE kind = ?1 AND (tenant, priority, shard) > (?2, ?3, ?4) AND due_ms IS NOT NULL
 ORDER BY tenant, priority, shard
 LIMIT ?5;
