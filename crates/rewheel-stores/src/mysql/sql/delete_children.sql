-- delete_children: forgets which job submitted deleted ones, given as pairs (parent, job) in JSON.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (parent CHAR(32) PATH '$[0]', job CHAR(32) PATH '$[1]')) AS given
       STRAIGHT_JOIN rewheel_children AS gone ON gone.parent = UNHEX(given.parent) AND gone.job = UNHEX(given.job)
