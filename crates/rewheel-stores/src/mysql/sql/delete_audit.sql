-- delete_audit: deletes audit entries, given as a list in JSON.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) AS given
       STRAIGHT_JOIN rewheel_audit AS gone ON gone.seq = given.seq
