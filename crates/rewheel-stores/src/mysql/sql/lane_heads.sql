-- lane_heads: reads the earliest due times of the scheduled jobs of lanes. Contract: WorkStore::lane_heads.
SELECT lanes.lane,
       (SELECT jobs.due_ms FROM rewheel_jobs jobs FORCE INDEX (PRIMARY)
         WHERE jobs.lane = lanes.lane AND jobs.state = 0 ORDER BY jobs.place LIMIT 1) AS due_ms
  FROM rewheel_lanes lanes FORCE INDEX (PRIMARY)
 WHERE lanes.lane IN ({list})
HAVING due_ms IS NOT NULL;
