-- delete_dead: takes a job out of the dead letters, which another table has by now.
DELETE FROM dead WHERE id = ?1;
