-- delete_holders: deletes holders, given as a list in JSON.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) AS given
       STRAIGHT_JOIN rewheel_holders AS gone ON gone.seq = given.seq
