-- delete_results: deletes results, given as a list in JSON, and remembers until a time that they existed.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$')) AS given
       STRAIGHT_JOIN rewheel_results AS gone FORCE INDEX (PRIMARY) ON gone.job = UNHEX(given.id)
   SET gone.content_type = NULL, gone.dropped = NULL, gone.body = NULL, gone.expires_ms = ?
