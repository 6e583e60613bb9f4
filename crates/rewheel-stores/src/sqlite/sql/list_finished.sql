-- list_finished: reads finished jobs, from the newest id before ?1. Contract: ReadStore::list.
SELECT {ended_job_without_payload} FROM finished INDEXED BY finished_id WHERE id < ?1 ORDER BY id DESC LIMIT ?2;
