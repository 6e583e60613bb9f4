-- group_step_down: job ?1 is no longer the head of its line.
DELETE FROM group_heads WHERE job = ?1;
