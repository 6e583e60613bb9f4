-- group_step_down_dead: the line of group ?1, kind ?2, tenant ?3 loses a head that is a dead letter, or that is not in the line any more, unless
-- dead letters of the kind hold up their groups.
DELETE FROM group_heads
 WHERE group_key = ?1 AND kind = ?2 AND tenant = ?3
   AND NOT EXISTS (SELECT 1 FROM group_members AS one
                    WHERE one.job = group_heads.job
                      AND (one.dead = 0 OR (SELECT blocks_on_dead FROM kinds WHERE name = ?2)));
