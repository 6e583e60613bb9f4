-- lane_heads: reads those of the lanes ($2 to $5: kind, tenant, priority, shard) that exist, with the earliest due time of their scheduled
-- jobs. Contract: WorkStore::lane_heads. $6 and $7 are lanes in the order of their numbers, and their floors: the due time from which to
-- read. (SELECT $2) hides the length of an array from the planner: otherwise a plan for this length always looks cheaper than the general
-- one, and PostgreSQL plans each call anew, which takes twice as long as running it.
SELECT now, known.lane, known.kind, known.tenant, known.priority, known.shard, first.due_ms
  FROM (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock,
       unnest((SELECT $2::text[]), (SELECT $3::text[]), (SELECT $4::int[]), (SELECT $5::int[])) AS wanted (kind, tenant, priority, shard),
       LATERAL (SELECT lanes.*, CASE WHEN ($6::int[])[width_bucket(lanes.lane, $6)] = lanes.lane
                                     THEN ($7::bigint[])[width_bucket(lanes.lane, $6)] END AS floor
                  FROM rewheel.lanes
                 WHERE lanes.kind = wanted.kind AND lanes.tenant = wanted.tenant AND lanes.priority = wanted.priority
                   AND lanes.shard = wanted.shard
                OFFSET 0) AS known
       LEFT JOIN LATERAL (SELECT jobs.due_ms FROM rewheel.jobs
                           WHERE shelf = 'due' AND state = 'scheduled' AND jobs.lane = known.lane
                             AND jobs.due_ms >= coalesce(known.floor, -9223372036854775808)
                           ORDER BY jobs.due_ms LIMIT 1) AS first ON true;
