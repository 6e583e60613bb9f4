-- extend: extends the time of job $2 of holder $1 under fence $3. Contract: WorkStore::extend. $4 is the clock offset, $5 the timeout, $6
-- the maximum total time, $7 the grace. Finds the row by id, so that PostgreSQL checks it again if another transaction changes it
-- meanwhile.
WITH holder AS MATERIALIZED (SELECT seq FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL FOR KEY SHARE)
UPDATE rewheel.jobs
   SET overdue_ms = greatest(overdue_ms, rewheel.later(least(rewheel.later(rewheel.now_ms() + $4, $5),
                                                            rewheel.later(leased_ms, $6)), $7)),
       shelf = 'held', held_by = jobs.holder,
       held_until_ms = greatest(overdue_ms, rewheel.later(least(rewheel.later(rewheel.now_ms() + $4, $5),
                                                               rewheel.later(leased_ms, $6)), $7))
 WHERE id = $2 AND fence = $3 AND state = 'leased' AND EXISTS (SELECT FROM holder)
   AND holder IS NOT DISTINCT FROM (SELECT seq FROM holder)            -- not `=`, so that the plan looks up the job by id
RETURNING overdue_ms;
