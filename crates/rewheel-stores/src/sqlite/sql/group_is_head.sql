-- group_is_head: checks whether job ?1 is the head of its line.
SELECT EXISTS (SELECT 1 FROM group_heads WHERE job = ?1);
