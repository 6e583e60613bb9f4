-- children_live: reads jobs of the hot table that job $3 submitted, from the newest id before $1. Contract: ReadStore::list.
SELECT {live_job_without_payload} FROM rewheel.jobs
 WHERE parent = $3 AND id < $1 ORDER BY id DESC LIMIT $2;
