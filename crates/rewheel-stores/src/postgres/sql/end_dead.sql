-- end_dead: live jobs become dead letters, now $1.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::int[], $5::int[], $6::int[], $7::int[], $8::bigint[], $9::text[],
                         $10::text[], $11::text[])
        AS given (id, fence, attempt, takeovers, takeovers_counted, settled_by, settled_fence, category, code, message)
),
gone AS (DELETE FROM rewheel.jobs USING given WHERE jobs.id = given.id RETURNING jobs.*)
INSERT INTO rewheel.dead (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                          takeovers_counted, settled_by, settled_fence, created_ms, deadline_ms, attempts_max,
                          attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
                          failure_message, ended_ms, payload)
SELECT gone.id, lane, 'dead', due_ms, because, given.fence, version + 1, given.attempt, attempts_before, given.takeovers,
       given.takeovers_counted, coalesce(given.settled_by, gone.settled_by), coalesce(given.settled_fence, gone.settled_fence),
       created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent,
       coalesce(category, failure_category), CASE WHEN category IS NULL THEN failure_code ELSE code END,
       coalesce(message, failure_message), $1, payload
  FROM gone JOIN given ON given.id = gone.id;
