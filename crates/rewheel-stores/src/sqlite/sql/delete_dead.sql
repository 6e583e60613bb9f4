-- delete_dead: deletes a dead letter that was moved to another table.
DELETE FROM dead WHERE id = ?1;
