-- list_live: reads the hot table, from the newest id before $1. Contract: ReadStore::list.
SELECT id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
       (SELECT holders.id FROM rewheel.holders WHERE holders.seq = jobs.holder) AS holder_id, overdue_ms, wanted, created_ms,
       deadline_ms, attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
       failure_message, NULL::bigint AS ended_ms
  FROM rewheel.jobs WHERE id < $1 ORDER BY id DESC LIMIT $2;
