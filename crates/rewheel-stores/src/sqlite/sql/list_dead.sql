-- list_dead: dead letters, the newest id before ?1 first. Contract: ReadStore::list.
SELECT * FROM dead INDEXED BY dead_id WHERE id < ?1 ORDER BY id DESC LIMIT ?2;
