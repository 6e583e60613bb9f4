-- delete_keys: deletes keys, given as a list in JSON.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(64) PATH '$')) AS given
       STRAIGHT_JOIN rewheel_keys AS gone ON gone.name = UNHEX(given.id)
