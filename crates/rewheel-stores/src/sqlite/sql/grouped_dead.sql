-- grouped_dead: reads dead letters in groups with key ?3, from the newest id before ?1. Contract: ReadStore::list.
SELECT {ended_job_without_payload}
  FROM dead
 WHERE id IN (SELECT job FROM group_members INDEXED BY group_members_key WHERE group_key = ?3 AND dead = 1 AND job < ?1
               ORDER BY job DESC LIMIT ?2)
 ORDER BY id DESC LIMIT ?2;
