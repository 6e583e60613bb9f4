-- failures_dead: reads the failure fields of the newest dead letters before an id. Contract: ReadStore::failures.
SELECT id, lane, ended_ms, failure_category, failure_code, failure_message FROM rewheel_dead WHERE id < ? ORDER BY id DESC LIMIT ?
