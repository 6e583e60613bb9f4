-- lanes_look: reads the earliest scheduled job of each lane $1 that is due before its floor $2. Contract: WorkStore::lanes. Reads what the
-- other statements leave out, dead rows included: the caller limits how often.
SELECT given.lane, first.due_ms
  FROM unnest($1::int[], $2::bigint[]) AS given (lane, floor),
       LATERAL (SELECT jobs.due_ms FROM rewheel.jobs
                 WHERE shelf = 'due' AND state = 'scheduled' AND jobs.lane = given.lane AND jobs.due_ms < given.floor
                 ORDER BY jobs.due_ms LIMIT 1) AS first;
