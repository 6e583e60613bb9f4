-- end_dead_batch: stores jobs of a settled batch as dead letters. The caller deletes them from the hot table. Contract: WorkStore::settle.
-- The last parameter is as that of let_go_batch.
INSERT INTO rewheel_dead ({moved}, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                          settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message, ended_ms)
SELECT {moved}, ABS(jobs.lane), 'dead', due_ms, because, fence, version + 1, given.attempt_new, attempts_before, takeovers, takeovers_counted,
       holder, fence, deadline_ms, UNHEX(given.category), UNHEX(given.code), UNHEX(given.message), ?
  FROM JSON_TABLE(?, '$[*]' COLUMNS (at_lane INT PATH '$[0]', at_place BIGINT PATH '$[1]', attempt_new BIGINT PATH '$[2]',
                                     category VARCHAR(64) PATH '$[3]', code VARCHAR(255) PATH '$[4]', message LONGTEXT PATH '$[5]')) AS given
       STRAIGHT_JOIN rewheel_jobs jobs FORCE INDEX (PRIMARY) ON jobs.lane = given.at_lane AND jobs.place = given.at_place;
