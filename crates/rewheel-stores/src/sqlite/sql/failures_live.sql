-- failures_live: reads the failure fields of the newest ?1 live jobs. Contract: ReadStore::failures.
SELECT id, lane, created_ms, failure_category, failure_code, failure_message FROM jobs INDEXED BY jobs_id ORDER BY id DESC LIMIT ?1;
