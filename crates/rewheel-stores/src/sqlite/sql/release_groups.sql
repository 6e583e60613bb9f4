-- release_groups: reads at most ?4 lines with live jobs after (?1, ?2, ?3), each with whether it needs another head: it has none, or its head
-- is no job any more, or a dead letter that does not hold it up. Contract: OperateStore::release_groups, ReadStore::stuck_groups. Steps from
-- one line to the next in the index: the cost depends on the number of lines, not of jobs.
WITH RECURSIVE line (group_key, kind, tenant) AS (
    SELECT ?1, ?2, ?3       -- left out below
    UNION ALL
    SELECT next.group_key, next.kind, next.tenant
      FROM line, group_members AS next
     -- Not one comparison of rows: SQLite would use only its first column, and read all members of the line.
     WHERE next.place = coalesce(
               (SELECT place FROM group_members INDEXED BY group_members_live
                 WHERE dead = 0 AND group_key = line.group_key AND kind = line.kind AND tenant > line.tenant
                 ORDER BY tenant, place LIMIT 1),
               (SELECT place FROM group_members INDEXED BY group_members_live
                 WHERE dead = 0 AND group_key = line.group_key AND kind > line.kind ORDER BY kind, tenant, place LIMIT 1),
               (SELECT place FROM group_members INDEXED BY group_members_live
                 WHERE dead = 0 AND group_key > line.group_key ORDER BY group_key, kind, tenant, place LIMIT 1))
     LIMIT ?4 + 1
)
SELECT line.group_key, line.kind, line.tenant,
       head.job IS NULL
       OR (NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = head.job)
           AND NOT (EXISTS (SELECT 1 FROM dead WHERE dead.id = head.job)
                    AND (SELECT blocks_on_dead FROM kinds WHERE name = line.kind)))
  FROM line LEFT JOIN group_heads AS head
    ON head.group_key = line.group_key AND head.kind = line.kind AND head.tenant = line.tenant
 WHERE (line.group_key, line.kind, line.tenant) <> (?1, ?2, ?3);
