-- lanes: lanes of kind ?1 behind (?2, ?3) that have scheduled jobs, with the earliest due. Contract: WorkStore::lanes.
SELECT lane, tenant, priority,
       (SELECT due_ms FROM jobs INDEXED BY jobs_due
         WHERE state = 'scheduled' AND lane = lanes.lane ORDER BY due_ms LIMIT 1) AS due_ms
  FROM lanes
 WHERE kind = ?1 AND (tenant, priority) > (?2, ?3) AND due_ms IS NOT NULL
 ORDER BY tenant, priority
 LIMIT ?4;
