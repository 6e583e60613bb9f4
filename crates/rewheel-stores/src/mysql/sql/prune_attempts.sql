-- prune_attempts: deletes the failed attempts of jobs, given as a list in JSON.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$')) AS given
       STRAIGHT_JOIN rewheel_attempts AS gone FORCE INDEX (job) ON gone.job = UNHEX(given.id)
