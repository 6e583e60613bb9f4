-- group_head: makes job ?1 the head of the line of group ?2, kind ?3, tenant ?4, now ?5, and returns the number of this turn: larger than
-- any before, and not less than the time. After a restore, a counter alone would start lower than the numbers that other services have seen.
INSERT INTO group_heads (turn, job, group_key, kind, tenant)
VALUES (max(?5, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'group_heads'), 0) + 1), ?1, ?2, ?3, ?4) RETURNING turn;
