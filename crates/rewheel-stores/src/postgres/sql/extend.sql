-- extend: more time for job $2 of holder $1 under fence $3. Contract: WorkStore::extend. $4 moves the clock, $5 is the
-- timeout, $6 the longest total, $7 the grace.
UPDATE rewheel.jobs
   SET overdue_ms = given.overdue_ms, shelf = 'held', held_by = jobs.holder, held_until_ms = given.overdue_ms
  FROM (SELECT seq FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL FOR KEY SHARE) AS owner,
       LATERAL (SELECT jobs.ctid AS place,
                       greatest(jobs.overdue_ms,
                                rewheel.later(least(rewheel.later(rewheel.now_ms() + $4, $5),
                                                    rewheel.later(jobs.leased_ms, $6)), $7)) AS overdue_ms
                  FROM rewheel.jobs
                 WHERE jobs.id = $2 AND jobs.fence = $3 AND jobs.state = 'leased' AND jobs.holder = owner.seq
                 OFFSET 0 FOR UPDATE) AS given
 WHERE jobs.ctid = given.place
RETURNING jobs.overdue_ms;
