-- release_groups: reads at most $4 lines after ($1, $2, $3), each with whether it needs another head: it has none and a job that could be
-- it, or its head is a dead letter that does not hold it up. Contract: OperateStore::release_groups. Steps from one line to the next in
-- the index: the cost depends on the number of lines, not of jobs.
WITH RECURSIVE line (group_key, kind, tenant) AS (
    (SELECT group_key, kind, tenant FROM rewheel.group_members
      WHERE (group_key, kind, tenant) > ($1, $2, $3) ORDER BY group_key, kind, tenant LIMIT 1)
    UNION ALL
    SELECT next.* FROM line,
           LATERAL (SELECT one.group_key, one.kind, one.tenant FROM rewheel.group_members AS one
                     WHERE (one.group_key, one.kind, one.tenant) > (line.group_key, line.kind, line.tenant)
                     ORDER BY one.group_key, one.kind, one.tenant LIMIT 1) AS next
)
SELECT line.group_key, line.kind, line.tenant,
       coalesce(CASE WHEN head.job IS NULL
                     THEN EXISTS (SELECT FROM rewheel.group_members AS one
                                   WHERE one.group_key = line.group_key AND one.kind = line.kind AND one.tenant = line.tenant
                                     AND (NOT one.dead OR (SELECT blocks_on_dead FROM rewheel.kinds WHERE name = line.kind)))
                     ELSE (SELECT dead FROM rewheel.group_members AS one WHERE one.job = head.job)
                          AND NOT (SELECT blocks_on_dead FROM rewheel.kinds WHERE name = line.kind) END, false)
  FROM (SELECT * FROM line LIMIT $4) AS line
       LEFT JOIN LATERAL (SELECT one.job FROM rewheel.group_heads AS one
                           WHERE one.group_key = line.group_key AND one.kind = line.kind AND one.tenant = line.tenant
                           OFFSET 0) AS head ON true;
