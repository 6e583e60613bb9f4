-- release: job ?1 is the head of its line, in turn ?2. If it was blocked, it is due at ?3 at the earliest. A paused job stays paused.
UPDATE jobs SET turn = ?2, due_ms = CASE state WHEN 'blocked' THEN max(due_ms, ?3) ELSE due_ms END,
                state = CASE state WHEN 'blocked' THEN 'scheduled' ELSE state END
 WHERE id = ?1
RETURNING lane;
