-- stuck_groups: counts the lines, up to $1, that have a job which could be their head and have no head. Contract:
-- ReadStore::stuck_groups.
SELECT count(*) FROM (
    SELECT DISTINCT one.group_key, one.kind, one.tenant
      FROM rewheel.group_members AS one JOIN rewheel.kinds ON kinds.name = one.kind
     WHERE (NOT one.dead OR kinds.blocks_on_dead)
       AND NOT EXISTS (SELECT FROM rewheel.group_heads AS head
                        WHERE head.group_key = one.group_key AND head.kind = one.kind AND head.tenant = one.tenant)
     LIMIT $1) AS stuck;
