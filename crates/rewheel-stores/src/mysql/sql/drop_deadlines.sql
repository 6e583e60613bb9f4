-- drop_deadlines: jobs have no longer these deadlines, given as pairs (deadline, job) in JSON.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (deadline_ms BIGINT PATH '$[0]', job CHAR(32) PATH '$[1]')) AS given
       STRAIGHT_JOIN rewheel_deadlines AS gone ON gone.deadline_ms = given.deadline_ms AND gone.job = UNHEX(given.job)
