-- claim: leases jobs to holder $1. Contract: WorkStore::claim. $2 moves the clock, $3 is the horizon. Then the visits in their
-- order, $4 to $7: kind, lane, how many, and from which due on to look; then the same lanes in the order of their numbers, $8 to
-- $10: lane, hold, grace. $11 says how many at most. From $12 on they are listed, and stay on their shelf; $13 are lists that
-- are of no use any more.
-- Found by one range for each lane and updated by their place: no plan but this one is fast whatever the statistics say.
WITH clock AS MATERIALIZED (SELECT rewheel.now_ms() + $2 AS now),
-- A holder that is being buried waits for this to end, or this finds it dead.
holder AS MATERIALIZED (SELECT seq FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL FOR KEY SHARE),
found AS MATERIALIZED (
    SELECT job.place, job.id
      FROM (SELECT given.*, clock.now
              FROM clock, unnest($4::text[], $5::int[], $6::bigint[], $7::bigint[])
                   AS given (kind, lane, most, floor)
             WHERE EXISTS (SELECT FROM holder)
               -- Not EXISTS: as a join it could bring the visits in the order of the kinds.
               AND (SELECT NOT paused AND parked_ms IS NULL FROM rewheel.kinds WHERE name = given.kind)
             OFFSET 0) AS visit,
           LATERAL (SELECT jobs.ctid AS place, jobs.id FROM rewheel.jobs
                     WHERE shelf = 'due' AND state = 'scheduled' AND jobs.lane = visit.lane
                       AND due_ms >= visit.floor AND due_ms <= rewheel.later(visit.now, $3)
                       AND (deadline_ms IS NULL OR deadline_ms > visit.now)     -- the deadline sweep ends those
                     ORDER BY due_ms, seq LIMIT visit.most FOR UPDATE SKIP LOCKED) AS job
     LIMIT $11
),
many AS MATERIALIZED (SELECT count(*) >= $12 AS listed FROM found),
list AS (
    INSERT INTO rewheel.claims (holder, at_ms, jobs)
    SELECT holder.seq, now, ARRAY (SELECT id FROM found) FROM holder, clock, many WHERE listed
    RETURNING seq
),
done AS (DELETE FROM rewheel.claims WHERE seq = ANY ($13::bigint[]))
UPDATE rewheel.jobs
   SET state = 'leased', holder = holder.seq, leased_ms = now, fence = fence + 1, version = version + 1,
       overdue_ms = rewheel.overdue(due_ms, now, attempt_timeout_ms, lane, $8, $9, $10),
       shelf = CASE WHEN listed THEN shelf ELSE 'held' END,
       held_by = CASE WHEN listed THEN held_by ELSE holder.seq END,
       held_until_ms = CASE WHEN listed THEN held_until_ms
                            ELSE rewheel.overdue(due_ms, now, attempt_timeout_ms, lane, $8, $9, $10) END
  FROM holder, clock, many WHERE jobs.ctid = ANY (ARRAY (SELECT place FROM found))
RETURNING now, lane, jobs.seq, jobs.ctid, jobs.id, due_ms, because, fence, version, attempt, attempts_before, takeovers,
          takeovers_counted, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent,
          failure_category, failure_code, failure_message, payload, overdue_ms, (SELECT seq FROM list);
