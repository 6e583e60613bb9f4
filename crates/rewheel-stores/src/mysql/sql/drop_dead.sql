-- drop_dead: deletes a dead letter that was moved to another table.
DELETE FROM rewheel_dead WHERE id = ?;
