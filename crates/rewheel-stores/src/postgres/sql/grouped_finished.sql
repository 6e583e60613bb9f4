-- grouped_finished: reads finished jobs in groups with key $3, from the newest id before $1. Only bin 0 takes such jobs. Contract:
-- ReadStore::list.
(SELECT {ended_job_without_payload} FROM rewheel.finished_bin_0 WHERE group_key = $3 AND id < $1 ORDER BY id DESC LIMIT $2)
UNION ALL
(SELECT {ended_job_without_payload} FROM rewheel.finished_before WHERE group_key = $3 AND id < $1 ORDER BY id DESC LIMIT $2)
 ORDER BY id DESC LIMIT $2;
