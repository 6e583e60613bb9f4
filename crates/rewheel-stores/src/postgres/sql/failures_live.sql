-- failures_live: what tells failures apart, of at most $2 jobs of the hot table, the newest id before $1 first. Contract: ReadStore::failures.
SELECT id, lane, created_ms, failure_category, failure_code, failure_message
  FROM rewheel.jobs WHERE id < $1 ORDER BY id DESC LIMIT $2;
