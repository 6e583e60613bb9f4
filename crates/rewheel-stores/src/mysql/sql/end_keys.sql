-- end_keys: stores the final state of jobs in their keys, given as pairs (name, job) in JSON. A key is matched with its job: another job may
-- have the key by now.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (name CHAR(64) PATH '$[0]', job CHAR(32) PATH '$[1]')) AS given
       STRAIGHT_JOIN rewheel_keys AS ended FORCE INDEX (PRIMARY) ON ended.name = UNHEX(given.name) AND ended.job = UNHEX(given.job)
   SET ended.state = ?, ended.expires_ms = ?;
