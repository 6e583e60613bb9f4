-- list_finished: jobs that ended, the newest id before ?1 first. Contract: ReadStore::list.
SELECT * FROM finished INDEXED BY finished_id WHERE id < ?1 ORDER BY id DESC LIMIT ?2;
