-- release_groups: reads at most $4 lines with live jobs after ($1, $2, $3), each with whether it needs another head: it has none, or its
-- head is no job any more, or a dead letter that does not hold it up. Contract: OperateStore::release_groups, ReadStore::stuck_groups.
-- Steps from one line to the next in the index: the cost depends on the number of lines, not of jobs.
WITH RECURSIVE line (group_key, kind, tenant) AS (
    (SELECT group_key, kind, tenant FROM rewheel.group_members
      WHERE NOT dead AND (group_key, kind, tenant) > ($1, $2, $3) ORDER BY group_key, kind, tenant LIMIT 1)
    UNION ALL
    SELECT next.* FROM line,
           LATERAL (SELECT one.group_key, one.kind, one.tenant FROM rewheel.group_members AS one
                     WHERE NOT one.dead AND (one.group_key, one.kind, one.tenant) > (line.group_key, line.kind, line.tenant)
                     ORDER BY one.group_key, one.kind, one.tenant LIMIT 1) AS next
)
-- Not EXISTS: the planner could read a whole table for it.
SELECT line.group_key, line.kind, line.tenant,
       CASE WHEN head.job IS NULL THEN true
            WHEN (SELECT 1 FROM rewheel.jobs WHERE jobs.id = head.job) IS NOT NULL THEN false
            WHEN (SELECT 1 FROM rewheel.dead WHERE dead.id = head.job) IS NOT NULL
            THEN NOT (SELECT blocks_on_dead FROM rewheel.kinds WHERE name = line.kind)
            ELSE true END
  FROM (SELECT * FROM line LIMIT $4) AS line
       LEFT JOIN LATERAL (SELECT one.job FROM rewheel.group_heads AS one
                           WHERE one.group_key = line.group_key AND one.kind = line.kind AND one.tenant = line.tenant
                           OFFSET 0) AS head ON true;
