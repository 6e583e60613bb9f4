-- deadlines: reads live jobs whose deadline has passed at ?1, leased ones at ?2. Contract: OperateStore::deadlines.
SELECT jobs.seq, jobs.id, lane, CASE state WHEN 'blocked' THEN 'scheduled' ELSE state END, attempt, takeovers, takeovers_counted, holders.id, fence, wanted, group_key
  FROM jobs INDEXED BY jobs_deadline LEFT JOIN holders ON holders.seq = jobs.holder
 WHERE deadline_ms <= ?1 AND (state <> 'leased' OR deadline_ms <= ?2)
   AND NOT (state = 'paused' AND EXISTS (SELECT 1 FROM unreadable WHERE job = jobs.id))       -- those wait for an operator
 ORDER BY deadline_ms LIMIT ?3;
