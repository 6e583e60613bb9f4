-- failures_dead: reads the failure fields of at most $2 dead letters, from the newest id before $1. Contract: ReadStore::failures.
SELECT id, lane, ended_ms, failure_category, failure_code, failure_message
  FROM rewheel.dead WHERE id < $1 ORDER BY id DESC LIMIT $2;
