-- end_finished: moves live jobs to the finished jobs, now $1, until their retention ends. $18 are the widths of bins, of
-- those jobs that may be in a bin.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::int[], $5::int[], $6::int[], $7::int[], $8::bigint[], $9::text[],
                         $10::text[], $11::text[], $12::text[], $13::bigint[], $14::uuid[], $15::bigint[], $16::bigint[],
                         $17::text[], $18::bigint[])
        AS given (id, fence, attempt, takeovers, takeovers_counted, settled_by, settled_fence, category, code, message,
                  state, expires_ms, ran_by, started_ms, duration_ms, success_code, width_ms)
),
-- The jobs are locked, and are found by id whatever the statistics say.
gone AS (
    DELETE FROM rewheel.jobs
     USING given, LATERAL (SELECT jobs.ctid AS place FROM rewheel.jobs WHERE jobs.id = given.id OFFSET 0) AS found
     WHERE jobs.ctid = found.place
    RETURNING jobs.*, given.fence AS fence_now, given.attempt AS attempt_now, given.takeovers AS takeovers_now,
              given.takeovers_counted AS counted_now, given.settled_by AS by_now, given.settled_fence AS settled_now,
              category, code, message,
              given.state AS state_now, expires_ms, ran_by, started_ms, duration_ms, success_code, given.width_ms
)
INSERT INTO rewheel.finished_bins ({moved}, bin, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                                   takeovers_counted, settled_by, settled_fence, deadline_ms, failure_category, failure_code,
                                   failure_message, ended_ms, expires_ms, ran_by, started_ms, duration_ms, success_code)
SELECT {moved}, CASE WHEN parent IS NULL
                     THEN coalesce((SELECT bins.bin FROM rewheel.bins WHERE bins.width_ms = gone.width_ms
                                       AND bins.from_ms = expires_ms - expires_ms % gone.width_ms), 0) ELSE 0 END,
       state_now, due_ms, because, fence_now, version + 1, attempt_now, attempts_before, takeovers_now,
       counted_now, coalesce(by_now, settled_by), coalesce(settled_now, settled_fence),
       deadline_ms, coalesce(category, failure_category), CASE WHEN category IS NULL THEN failure_code ELSE code END,
       coalesce(message, failure_message), $1, expires_ms, ran_by, started_ms, duration_ms, success_code
  FROM gone;
