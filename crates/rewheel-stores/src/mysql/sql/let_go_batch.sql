-- let_go_batch: releases jobs, which stay live. Contract: WorkStore::settle, give_back. The first parameter is a JSON list with a list for
-- each job, in the order of the columns; texts that may have any bytes are in hexadecimal digits.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (lane INT PATH '$[0]', place BIGINT PATH '$[1]', fence BIGINT PATH '$[2]',
                                     state INT PATH '$[3]', attempt BIGINT PATH '$[4]', due_ms BIGINT PATH '$[5]',
                                     because VARCHAR(64) PATH '$[6]', category VARCHAR(64) PATH '$[7]', code VARCHAR(255) PATH '$[8]',
                                     message LONGTEXT PATH '$[9]', next_lane INT PATH '$[10]', next_place BIGINT PATH '$[11]')) AS given
       STRAIGHT_JOIN rewheel_jobs jobs FORCE INDEX (PRIMARY) ON jobs.lane = given.lane AND jobs.place = given.place
   SET jobs.state = given.state, jobs.version = jobs.version + 1, jobs.attempt = given.attempt, jobs.due_ms = given.due_ms,
       jobs.because = COALESCE(UNHEX(given.because), jobs.because),
       jobs.holder = 0, jobs.claim = 0, jobs.leased_ms = 0, jobs.overdue_ms = 0, jobs.wanted = 0, jobs.started_fence = 0,
       jobs.settled_by = ?, jobs.settled_fence = given.fence, jobs.settled_kept = 0,
       jobs.failure_code = IF(given.category IS NULL, jobs.failure_code, UNHEX(given.code)),
       jobs.failure_category = COALESCE(UNHEX(given.category), jobs.failure_category),
       jobs.failure_message = COALESCE(UNHEX(given.message), jobs.failure_message),
       jobs.lane = given.next_lane, jobs.place = given.next_place
 WHERE jobs.state = 1 AND jobs.holder = ? AND jobs.fence = given.fence;
