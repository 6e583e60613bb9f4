-- grouped_finished: reads finished jobs in groups with key ?3, from the newest id before ?1. Contract: ReadStore::list.
SELECT {ended_job_without_payload}
  FROM finished INDEXED BY finished_group
 WHERE group_key = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2;
