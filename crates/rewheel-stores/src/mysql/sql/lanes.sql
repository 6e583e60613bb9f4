-- lanes: reads the lanes of kinds, after a lane, that have scheduled jobs, with the earliest due time. Contract: WorkStore::lanes.
SELECT lanes.kind, lanes.tenant, lanes.priority, lanes.shard,
       (SELECT jobs.due_ms FROM rewheel_jobs jobs FORCE INDEX (PRIMARY)
         WHERE jobs.lane = lanes.lane AND jobs.state = 0 ORDER BY jobs.place LIMIT 1) AS due_ms
  FROM rewheel_lanes lanes FORCE INDEX (name)
 WHERE lanes.kind IN ({list})
   AND (lanes.kind > ? OR (lanes.kind = ? AND (lanes.tenant > ? OR (lanes.tenant = ? AND (lanes.priority > ?
        OR (lanes.priority = ? AND lanes.shard > ?))))))
HAVING due_ms IS NOT NULL
 ORDER BY lanes.kind, lanes.tenant, lanes.priority, lanes.shard
 LIMIT ?;
