-- grouped_live: reads jobs of the hot table in groups with key ?3, from the newest id before ?1. Contract: ReadStore::list.
SELECT {live_job_without_payload}
  FROM jobs LEFT JOIN holders ON holders.seq = jobs.holder
 WHERE jobs.id IN (SELECT job FROM group_members INDEXED BY group_members_key WHERE group_key = ?3 AND dead = 0 AND job < ?1
                    ORDER BY job DESC LIMIT ?2)
 ORDER BY jobs.id DESC LIMIT ?2;
