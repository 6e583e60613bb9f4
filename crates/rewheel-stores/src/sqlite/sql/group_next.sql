-- group_next: reads the smallest member of the line of group ?1, kind ?2, tenant ?3, if the line has no head. A dead letter counts only if
-- its kind says so.
SELECT job FROM group_members INDEXED BY group_members_line
 WHERE group_key = ?1 AND kind = ?2 AND tenant = ?3
   AND NOT EXISTS (SELECT 1 FROM group_heads WHERE group_key = ?1 AND kind = ?2 AND tenant = ?3)
   AND (dead = 0 OR (SELECT blocks_on_dead FROM kinds WHERE name = ?2))
 ORDER BY place LIMIT 1;
