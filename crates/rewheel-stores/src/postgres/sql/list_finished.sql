-- list_finished: reads finished jobs, from the newest id before $1. Contract: ReadStore::list.
SELECT id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
       NULL::uuid AS holder_id, NULL::bigint AS overdue_ms, NULL::text AS wanted, created_ms,
       deadline_ms, attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
       failure_message, ended_ms
  FROM rewheel.finished WHERE id < $1 ORDER BY id DESC LIMIT $2;
