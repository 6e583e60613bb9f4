-- stuck_groups: counts the lines, up to ?1, that have a job which could be their head and have no head. Contract: ReadStore::stuck_groups.
SELECT count(*) FROM (
    SELECT DISTINCT group_key, kind, tenant FROM group_members AS one INDEXED BY group_members_line
     WHERE (dead = 0 OR (SELECT blocks_on_dead FROM kinds WHERE name = one.kind))
       AND NOT EXISTS (SELECT 1 FROM group_heads AS head
                        WHERE head.group_key = one.group_key AND head.kind = one.kind AND head.tenant = one.tenant)
     LIMIT ?1);
