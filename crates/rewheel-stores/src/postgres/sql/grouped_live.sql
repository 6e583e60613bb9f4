-- grouped_live: reads jobs of the hot table in groups with key $3, from the newest id before $1. Contract: ReadStore::list. Index:
-- group_members_key (group_key, dead, job).
SELECT {live_job_without_payload} FROM rewheel.jobs
 WHERE id = ANY (ARRAY (SELECT job FROM rewheel.group_members WHERE group_key = $3 AND NOT dead AND job < $1
                         ORDER BY job DESC LIMIT $2))
 ORDER BY id DESC;
