-- list_dead: reads dead letters, from the newest id. Contract: ReadStore::list.
SELECT {ended_job_without_payload} FROM rewheel_dead FORCE INDEX (PRIMARY) WHERE id < ? ORDER BY id DESC LIMIT ?;
