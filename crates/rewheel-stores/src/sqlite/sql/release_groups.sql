-- release_groups: reads at most ?4 lines after (?1, ?2, ?3), each with whether it needs another head: it has none and a job that could be it,
-- or its head is a dead letter that does not hold it up. Contract: OperateStore::release_groups. Steps from one line to the next in the
-- index: the cost depends on the number of lines, not of jobs.
WITH RECURSIVE line (group_key, kind, tenant) AS (
    SELECT * FROM (SELECT group_key, kind, tenant FROM group_members INDEXED BY group_members_line
                    WHERE (group_key, kind, tenant) > (?1, ?2, ?3) ORDER BY group_key, kind, tenant LIMIT 1)
    UNION ALL
    SELECT next.group_key, next.kind, next.tenant
      FROM line, group_members AS next
     WHERE next.place = (SELECT later.place FROM group_members AS later INDEXED BY group_members_line
                          WHERE (later.group_key, later.kind, later.tenant) > (line.group_key, line.kind, line.tenant)
                          ORDER BY later.group_key, later.kind, later.tenant LIMIT 1)
     LIMIT ?4
)
SELECT line.group_key, line.kind, line.tenant,
       CASE WHEN head.job IS NULL
            THEN EXISTS (SELECT 1 FROM group_members AS one INDEXED BY group_members_line
                          WHERE one.group_key = line.group_key AND one.kind = line.kind AND one.tenant = line.tenant
                            AND (one.dead = 0 OR (SELECT blocks_on_dead FROM kinds WHERE name = line.kind)))
            ELSE NOT EXISTS (SELECT 1 FROM group_members AS one
                              WHERE one.job = head.job
                                AND (one.dead = 0 OR (SELECT blocks_on_dead FROM kinds WHERE name = line.kind))) END
  FROM line LEFT JOIN group_heads AS head
    ON head.group_key = line.group_key AND head.kind = line.kind AND head.tenant = line.tenant;
