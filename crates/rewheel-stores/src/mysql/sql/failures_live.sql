-- failures_live: reads the failure fields of the newest live jobs before an id. Contract: ReadStore::failures.
SELECT id, lane, created_ms, failure_category, failure_code, failure_message FROM rewheel_jobs FORCE INDEX (id)
 WHERE id < ? ORDER BY id DESC LIMIT ?
