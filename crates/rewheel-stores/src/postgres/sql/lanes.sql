-- lanes: lanes of kinds $2 behind ($3, $4, $5) that have scheduled jobs, with the earliest due. Contract: WorkStore::lanes.
-- $7 and $8 say from which due on to look, for lanes with many rows that are gone and not yet cleared away.
SELECT now, lanes.lane, kind, tenant, priority, first.due_ms
  FROM (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock,
       rewheel.lanes LEFT JOIN unnest($7::int[], $8::bigint[]) AS floor (lane, due_ms) ON floor.lane = lanes.lane,
       LATERAL (SELECT jobs.due_ms FROM rewheel.jobs
                 WHERE shelf = 'due' AND state = 'scheduled' AND jobs.lane = lanes.lane
                   AND jobs.due_ms >= coalesce(floor.due_ms, -9223372036854775808)
                 ORDER BY jobs.due_ms LIMIT 1) AS first
 WHERE kind = ANY ($2::text[]) AND (kind, tenant, priority) > ($3, $4, $5)
 ORDER BY kind, tenant, priority
 LIMIT $6;
