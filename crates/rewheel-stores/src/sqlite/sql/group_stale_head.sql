-- group_stale_head: the line of group ?1, kind ?2, tenant ?3 loses a head that is no job any more, or that is a dead letter, unless dead
-- letters of the kind hold up their groups.
DELETE FROM group_heads
 WHERE group_key = ?1 AND kind = ?2 AND tenant = ?3
   AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = group_heads.job)
   AND NOT (EXISTS (SELECT 1 FROM dead WHERE dead.id = group_heads.job) AND (SELECT blocks_on_dead FROM kinds WHERE name = ?2));
