-- failures_dead: what tells failures apart, of at most $2 dead letters, the newest id before $1 first. Contract: ReadStore::failures.
SELECT id, lane, ended_ms, failure_category, failure_code, failure_message
  FROM rewheel.dead WHERE id < $1 ORDER BY id DESC LIMIT $2;
