-- failures_dead: reads the failure fields of the newest ?1 dead letters. Contract: ReadStore::failures.
SELECT id, lane, ended_ms, failure_category, failure_code, failure_message FROM dead INDEXED BY dead_id ORDER BY id DESC LIMIT ?1;
