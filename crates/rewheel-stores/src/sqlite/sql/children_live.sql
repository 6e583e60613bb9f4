-- children_live: reads jobs of the hot table that job ?3 submitted, from the newest id before ?1. Contract: ReadStore::list.
SELECT {live_job_without_payload}
  FROM jobs INDEXED BY jobs_parent LEFT JOIN holders ON holders.seq = jobs.holder
 WHERE jobs.parent = ?3 AND jobs.id < ?1 ORDER BY jobs.id DESC LIMIT ?2;
