-- lock_deads: locks the dead letters among $1 in the given order, and reads them without payloads.
SELECT job.* FROM unnest($1::uuid[]) AS given (id),
       LATERAL (SELECT id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                       NULL::uuid AS holder_id, NULL::bigint AS overdue_ms, NULL::text AS wanted, created_ms, deadline_ms,
                       attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
                       failure_message, ended_ms
                  FROM rewheel.dead WHERE dead.id = given.id FOR UPDATE) AS job;
