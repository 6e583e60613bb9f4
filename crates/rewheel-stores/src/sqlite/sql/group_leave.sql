-- group_leave: removes job ?1, which has ended, from its line.
DELETE FROM group_members WHERE job = ?1;
