-- delete_ledger: deletes lines of the ledger, given as a list in JSON.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) AS given
       STRAIGHT_JOIN rewheel_ledger AS gone ON gone.seq = given.seq
