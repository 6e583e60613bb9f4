-- delete_finished: deletes finished jobs, given as a list in JSON. The join order lets every plan look up one row after the other: a
-- DELETE with a long IN may scan the table, and wait for rows of others.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$')) AS given
       STRAIGHT_JOIN rewheel_finished AS gone ON gone.id = UNHEX(given.id)
