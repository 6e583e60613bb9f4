-- list_live: reads the hot table, from the newest id before ?1. Contract: ReadStore::list.
SELECT {live_job_without_payload}
  FROM jobs INDEXED BY jobs_id LEFT JOIN holders ON holders.seq = jobs.holder
 WHERE jobs.id < ?1 ORDER BY jobs.id DESC LIMIT ?2;
