-- group_stale_dead: marks members of the line of group ?1, kind ?2, tenant ?3 that are dead letters.
UPDATE group_members INDEXED BY group_members_live SET dead = 1
 WHERE group_key = ?1 AND kind = ?2 AND tenant = ?3 AND dead = 0
   AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = group_members.job) AND EXISTS (SELECT 1 FROM dead WHERE dead.id = group_members.job);
