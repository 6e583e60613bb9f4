-- lane_heads: reads those of the lanes ($2 to $5: kind, tenant, priority, shard) that have scheduled jobs, with the earliest due time.
-- Contract: WorkStore::lane_heads. $6 and $7 are the floors of lanes with many dead rows that vacuum has not removed yet.
SELECT now, known.lane, known.kind, known.tenant, known.priority, known.shard, first.due_ms
  FROM (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock,
       unnest($2::text[], $3::text[], $4::int[], $5::int[]) AS wanted (kind, tenant, priority, shard),
       LATERAL (SELECT lane, kind, tenant, priority, shard FROM rewheel.lanes
                 WHERE lanes.kind = wanted.kind AND lanes.tenant = wanted.tenant AND lanes.priority = wanted.priority
                   AND lanes.shard = wanted.shard
                OFFSET 0) AS known
       LEFT JOIN unnest($6::int[], $7::bigint[]) AS floor (lane, due_ms) ON floor.lane = known.lane,
       LATERAL (SELECT jobs.due_ms FROM rewheel.jobs
                 WHERE shelf = 'due' AND state = 'scheduled' AND jobs.lane = known.lane
                   AND jobs.due_ms >= coalesce(floor.due_ms, -9223372036854775808)
                 ORDER BY jobs.due_ms LIMIT 1) AS first;
