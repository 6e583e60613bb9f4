-- group_next: reads the smallest member of the line of group ?1, kind ?2, tenant ?3, if the line has no head. A dead letter counts only if
-- its kind says so. Two lookups, each in an index of its own: a line may have any number of dead letters.
SELECT job FROM group_members
 WHERE NOT EXISTS (SELECT 1 FROM group_heads WHERE group_key = ?1 AND kind = ?2 AND tenant = ?3)
   AND place = (SELECT min(first.place) FROM (
           SELECT * FROM (SELECT place FROM group_members INDEXED BY group_members_live
                           WHERE group_key = ?1 AND kind = ?2 AND tenant = ?3 AND dead = 0 ORDER BY place LIMIT 1)
           UNION ALL
           SELECT * FROM (SELECT place FROM group_members INDEXED BY group_members_dead
                           WHERE group_key = ?1 AND kind = ?2 AND tenant = ?3 AND dead = 1
                             AND (SELECT blocks_on_dead FROM kinds WHERE name = ?2) ORDER BY place LIMIT 1)) AS first);
