-- delete_grouped: forgets the groups of deleted jobs, given as pairs (group key, job) in JSON.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (group_key VARCHAR(510) PATH '$[0]', job CHAR(32) PATH '$[1]')) AS given
       STRAIGHT_JOIN rewheel_grouped AS gone ON gone.group_key = UNHEX(given.group_key) AND gone.job = UNHEX(given.job)
