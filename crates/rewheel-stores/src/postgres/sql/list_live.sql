-- list_live: reads the hot table, from the newest id before $1. Contract: ReadStore::list.
SELECT {live_job_without_payload} FROM rewheel.jobs WHERE id < $1 ORDER BY id DESC LIMIT $2;
