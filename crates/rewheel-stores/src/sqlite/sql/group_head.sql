-- group_head: makes job ?1 the head of the line of group ?2, kind ?3, tenant ?4, and returns the number of this turn.
INSERT INTO group_heads (job, group_key, kind, tenant) VALUES (?1, ?2, ?3, ?4) RETURNING turn;
