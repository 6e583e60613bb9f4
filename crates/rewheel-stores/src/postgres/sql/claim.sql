-- claim: leases jobs to holder $1. Contract: WorkStore::claim. $2 moves the clock, $3 is the horizon, $4 how many at most.
-- Then the visits in their order: kind, lane, how many, attempt timeout, grace, and from which due on to look.
-- Found by one range for each lane and updated by their place: no plan but this one is fast whatever the statistics say.
WITH clock AS MATERIALIZED (SELECT rewheel.now_ms() + $2 AS now),
-- A holder that is being buried waits for this to end, or this finds it dead.
holder AS MATERIALIZED (SELECT seq FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL FOR KEY SHARE),
found AS MATERIALIZED (
    SELECT visit.nth, visit.now, job.place,
           rewheel.later(rewheel.later(greatest(job.due_ms, visit.now),
                                       coalesce(job.attempt_timeout_ms, visit.attempt_timeout)), visit.grace) AS overdue
      FROM (SELECT given.*, clock.now
              FROM clock, unnest($5::text[], $6::int[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
                   WITH ORDINALITY AS given (kind, lane, most, attempt_timeout, grace, floor, nth)
             WHERE EXISTS (SELECT FROM holder)
               -- Not EXISTS: as a join it could bring the visits in the order of the kinds.
               AND (SELECT NOT paused AND parked_ms IS NULL FROM rewheel.kinds WHERE name = given.kind)
             OFFSET 0) AS visit,
           LATERAL (SELECT jobs.ctid AS place, due_ms, attempt_timeout_ms FROM rewheel.jobs
                     WHERE state = 'scheduled' AND jobs.lane = visit.lane
                       AND due_ms >= visit.floor AND due_ms <= rewheel.later(visit.now, $3)
                       AND (deadline_ms IS NULL OR deadline_ms > visit.now)     -- the deadline sweep ends those
                     ORDER BY due_ms, seq LIMIT visit.most FOR UPDATE SKIP LOCKED) AS job
     LIMIT $4
)
UPDATE rewheel.jobs
   SET state = 'leased', holder = (SELECT seq FROM holder), leased_ms = found.now, overdue_ms = found.overdue,
       fence = fence + 1, version = version + 1
  FROM found WHERE jobs.ctid = found.place
RETURNING found.now, nth, seq, jobs.ctid, id, due_ms, because, fence, version, attempt, attempts_before, takeovers,
          takeovers_counted, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent,
          failure_category, failure_code, failure_message, payload, overdue_ms;
