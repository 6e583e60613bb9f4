-- list_finished: reads finished jobs, from the newest id before ?1. Contract: ReadStore::list.
SELECT * FROM finished INDEXED BY finished_id WHERE id < ?1 ORDER BY id DESC LIMIT ?2;
