-- children_dead: reads jobs of dead letters that job ?3 submitted, from the newest id before ?1. Contract: ReadStore::list.
SELECT {ended_job_without_payload}
  FROM dead INDEXED BY dead_parent
 WHERE parent = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2;
