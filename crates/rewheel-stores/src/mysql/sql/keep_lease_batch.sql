-- keep_lease_batch: keeps sticky retries with their holder, each under a new fence. Contract: WorkStore::settle. The first parameter is as
-- that of let_go_batch.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (lane INT PATH '$[0]', place BIGINT PATH '$[1]', fence BIGINT PATH '$[2]',
                                     next_fence BIGINT PATH '$[3]', attempt BIGINT PATH '$[4]', due_ms BIGINT PATH '$[5]',
                                     because VARCHAR(64) PATH '$[6]', category VARCHAR(64) PATH '$[7]', code VARCHAR(255) PATH '$[8]',
                                     message LONGTEXT PATH '$[9]', overdue_ms BIGINT PATH '$[10]')) AS given
       STRAIGHT_JOIN rewheel_jobs jobs FORCE INDEX (PRIMARY) ON jobs.lane = given.lane AND jobs.place = given.place
   SET jobs.settled_by = ?, jobs.settled_fence = given.fence, jobs.settled_kept = 1, jobs.fence = given.next_fence,
       jobs.version = jobs.version + 1, jobs.attempt = given.attempt, jobs.due_ms = given.due_ms,
       jobs.because = COALESCE(UNHEX(given.because), jobs.because), jobs.leased_ms = ?, jobs.overdue_ms = given.overdue_ms,
       jobs.failure_code = IF(given.category IS NULL, jobs.failure_code, UNHEX(given.code)),
       jobs.failure_category = COALESCE(UNHEX(given.category), jobs.failure_category),
       jobs.failure_message = COALESCE(UNHEX(given.message), jobs.failure_message)
 WHERE jobs.state = 1 AND jobs.holder = ? AND jobs.fence = given.fence;
