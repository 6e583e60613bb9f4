-- find: reads the jobs $1 from any table, in one snapshot. Contract: ReadStore::find.
SELECT id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
       (SELECT holders.id FROM rewheel.holders WHERE holders.seq = jobs.holder) AS holder_id, overdue_ms, wanted, created_ms,
       deadline_ms, attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
       failure_message, NULL::bigint AS ended_ms
  FROM rewheel.jobs WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
       NULL, NULL, NULL, created_ms,
       deadline_ms, attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
       failure_message, ended_ms
  FROM rewheel.dead WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
       NULL, NULL, NULL, created_ms,
       deadline_ms, attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
       failure_message, ended_ms
  FROM rewheel.finished WHERE id = ANY ($1::uuid[]);
