-- list_finished: reads finished jobs, from the newest id. Contract: ReadStore::list.
SELECT {ended_job_without_payload} FROM rewheel_finished FORCE INDEX (PRIMARY) WHERE id < ? ORDER BY id DESC LIMIT ?;
