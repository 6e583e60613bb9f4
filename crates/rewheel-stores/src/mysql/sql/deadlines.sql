-- deadlines: reads live jobs whose deadline has passed, leased ones a while ago. Contract: OperateStore::deadlines.
SELECT jobs.id
  FROM rewheel_deadlines deadlines STRAIGHT_JOIN rewheel_jobs jobs FORCE INDEX (id) ON jobs.id = deadlines.job
 WHERE deadlines.deadline_ms <= ? AND (jobs.state <> 1 OR deadlines.deadline_ms <= ?)
   AND NOT (jobs.state = 2 AND EXISTS (SELECT 1 FROM rewheel_unreadable WHERE job = jobs.id))       -- those wait for an operator
 ORDER BY deadlines.deadline_ms LIMIT ?;
