-- extend: more time for job $2 of holder $1 under fence $3. Contract: WorkStore::extend. $4 moves the clock, $5 is the
-- timeout, $6 the longest total, $7 the grace. Found by its id, so that a row which another transaction changes meanwhile is looked at
-- again.
WITH holder AS MATERIALIZED (SELECT seq FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL FOR KEY SHARE)
UPDATE rewheel.jobs
   SET overdue_ms = greatest(overdue_ms, rewheel.later(least(rewheel.later(rewheel.now_ms() + $4, $5),
                                                            rewheel.later(leased_ms, $6)), $7)),
       shelf = 'held', held_by = jobs.holder,
       held_until_ms = greatest(overdue_ms, rewheel.later(least(rewheel.later(rewheel.now_ms() + $4, $5),
                                                               rewheel.later(leased_ms, $6)), $7))
 WHERE id = $2 AND fence = $3 AND state = 'leased' AND EXISTS (SELECT FROM holder)
   AND holder IS NOT DISTINCT FROM (SELECT seq FROM holder)            -- not `=`: the job is found by its id
RETURNING overdue_ms;
