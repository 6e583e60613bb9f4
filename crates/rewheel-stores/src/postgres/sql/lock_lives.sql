-- lock_lives: locks the live jobs among $1 in the given order, and reads them without payloads.
SELECT job.* FROM unnest($1::uuid[]) AS given (id),
       LATERAL (SELECT id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                       (SELECT holders.id FROM rewheel.holders WHERE holders.seq = jobs.holder) AS holder_id, overdue_ms, wanted,
                       created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent,
                       failure_category, failure_code, failure_message, NULL::bigint AS ended_ms
                  FROM rewheel.jobs WHERE jobs.id = given.id FOR UPDATE OF jobs) AS job;
