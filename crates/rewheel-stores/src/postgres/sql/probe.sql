-- probe: leases the first job of lane $2 to holder $1, which may probe the kind. Contract: WorkStore::claim. $7 is the longest
-- attempt timeout that counts, $8 the due time to start from.
WITH clock AS MATERIALIZED (SELECT rewheel.now_ms() + $3 AS now),
holder AS MATERIALIZED (SELECT seq FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL FOR KEY SHARE),
found AS MATERIALIZED (
    SELECT job.place, now, rewheel.later(rewheel.later(greatest(due_ms, now), 
                                                      CASE WHEN attempt_timeout_ms IS NULL THEN $5
                                                           ELSE least(attempt_timeout_ms, $7) END), $6) AS overdue
      FROM clock,
           LATERAL (SELECT jobs.ctid AS place, due_ms, attempt_timeout_ms FROM rewheel.jobs
                     WHERE shelf = 'due' AND state = 'scheduled' AND lane = $2 AND due_ms >= $8
                       AND due_ms <= rewheel.later(now, $4)
                       AND (deadline_ms IS NULL OR deadline_ms > now) AND EXISTS (SELECT FROM holder)
                     ORDER BY due_ms, seq LIMIT 1 FOR UPDATE SKIP LOCKED) AS job
)
UPDATE rewheel.jobs
   SET state = 'leased', holder = (SELECT seq FROM holder), leased_ms = found.now, overdue_ms = found.overdue,
       fence = greatest(fence, rewheel.fence_floor()) + 1, version = version + 1, shelf = 'held', held_by = (SELECT seq FROM holder), held_until_ms = found.overdue
  FROM found WHERE jobs.ctid = found.place
RETURNING {claimed_job}, overdue_ms;
