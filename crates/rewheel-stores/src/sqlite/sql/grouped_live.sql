-- grouped_live: reads jobs of the hot table in groups with key ?3, from the newest id before ?1. Contract: ReadStore::list.
SELECT {live_job_without_payload}
  FROM jobs LEFT JOIN holders ON holders.seq = jobs.holder
 WHERE jobs.id IN (SELECT job FROM group_members INDEXED BY group_members_line WHERE group_key = ?3 AND dead = 0)
   AND jobs.id < ?1 ORDER BY jobs.id DESC LIMIT ?2;
