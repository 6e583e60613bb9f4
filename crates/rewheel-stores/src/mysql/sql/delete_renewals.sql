-- delete_renewals: deletes the heartbeats of holders, given as a list in JSON. Before delete_holders.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) AS given
       STRAIGHT_JOIN rewheel_holders AS holders ON holders.seq = given.seq
       STRAIGHT_JOIN rewheel_renewals AS gone ON gone.id = holders.id
