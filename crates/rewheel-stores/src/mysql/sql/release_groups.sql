-- release_groups: reads lines with live jobs, after a line, each with its head. Contract: OperateStore::release_groups,
-- ReadStore::stuck_groups. Reads an index only: as many entries as the lines have live members.
SELECT named.group_key, named.kind, named.tenant,
       line.head IS NULL
       OR (NOT EXISTS (SELECT 1 FROM rewheel_jobs jobs WHERE jobs.id = line.head)
           AND NOT (EXISTS (SELECT 1 FROM rewheel_dead dead WHERE dead.id = line.head)
                    AND COALESCE((SELECT blocks_on_dead FROM rewheel_kinds WHERE name = named.kind), 0)))
  FROM (SELECT group_key, kind, tenant FROM rewheel_members FORCE INDEX (line)
         WHERE dead = 0 AND group_key >= ?
           AND (group_key > ? OR (group_key = ? AND (kind > ? OR (kind = ? AND tenant > ?))))
         GROUP BY group_key, kind, tenant ORDER BY group_key, kind, tenant LIMIT ?) AS named
       LEFT JOIN rewheel_lines line ON line.group_key = named.group_key AND line.kind = named.kind AND line.tenant = named.tenant
 ORDER BY named.group_key, named.kind, named.tenant;
