-- release_groups: reads at most ?4 lines with live jobs after (?1, ?2, ?3), each with whether it needs another head: it has none, or its head
-- is no job any more, or a dead letter that does not hold it up. Contract: OperateStore::release_groups, ReadStore::stuck_groups. Steps from
-- one line to the next in the index: the cost depends on the number of lines, not of jobs.
WITH RECURSIVE line (group_key, kind, tenant) AS (
    SELECT * FROM (SELECT group_key, kind, tenant FROM group_members INDEXED BY group_members_live
                    WHERE dead = 0 AND (group_key, kind, tenant) > (?1, ?2, ?3) ORDER BY group_key, kind, tenant LIMIT 1)
    UNION ALL
    SELECT next.group_key, next.kind, next.tenant
      FROM line, group_members AS next
     WHERE next.place = (SELECT later.place FROM group_members AS later INDEXED BY group_members_live
                          WHERE later.dead = 0
                            AND (later.group_key, later.kind, later.tenant) > (line.group_key, line.kind, line.tenant)
                          ORDER BY later.group_key, later.kind, later.tenant LIMIT 1)
     LIMIT ?4
)
SELECT line.group_key, line.kind, line.tenant,
       head.job IS NULL
       OR (NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = head.job)
           AND NOT (EXISTS (SELECT 1 FROM dead WHERE dead.id = head.job)
                    AND (SELECT blocks_on_dead FROM kinds WHERE name = line.kind)))
  FROM line LEFT JOIN group_heads AS head
    ON head.group_key = line.group_key AND head.kind = line.kind AND head.tenant = line.tenant;
