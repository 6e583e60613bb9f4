-- failures_live: what tells failures apart, of the newest ?1 jobs of the hot table. Contract: ReadStore::failures.
SELECT id, lane, created_ms, failure_category, failure_code, failure_message FROM jobs INDEXED BY jobs_id ORDER BY id DESC LIMIT ?1;
