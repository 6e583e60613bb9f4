-- children_finished: reads jobs of finished jobs that job ?3 submitted, from the newest id before ?1. Contract: ReadStore::list.
SELECT {ended_job_without_payload}
  FROM finished INDEXED BY finished_parent
 WHERE parent = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2;
