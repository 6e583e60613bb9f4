-- list_dead: reads dead letters, from the newest id before $1. Contract: ReadStore::list.
SELECT {ended_job_without_payload} FROM rewheel.dead WHERE id < $1 ORDER BY id DESC LIMIT $2;
