-- group_stale_members: removes members of the line of group ?1, kind ?2, tenant ?3 that are no jobs any more.
DELETE FROM group_members INDEXED BY group_members_live
 WHERE group_key = ?1 AND kind = ?2 AND tenant = ?3 AND dead = 0
   AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = group_members.job);
