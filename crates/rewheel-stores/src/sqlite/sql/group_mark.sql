-- group_mark: writes whether job ?1 of a line is a dead letter (?2).
UPDATE group_members SET dead = ?2 WHERE job = ?1;
