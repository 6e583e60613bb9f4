-- failures_live: reads the failure fields of at most $2 live jobs, from the newest id before $1. Contract: ReadStore::failures.
SELECT id, lane, created_ms, failure_category, failure_code, failure_message
  FROM rewheel.jobs WHERE id < $1 ORDER BY id DESC LIMIT $2;
