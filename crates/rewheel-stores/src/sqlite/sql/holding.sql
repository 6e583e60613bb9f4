-- holding: reads all holders that have jobs, and whether they are alive. Steps from one holder to the next in the index: the cost depends
-- on the number of holders, not of jobs.
WITH RECURSIVE step (holder) AS (
    SELECT (SELECT min(holder) FROM jobs INDEXED BY jobs_held WHERE state = 'leased')
    UNION ALL
    SELECT (SELECT min(jobs.holder) FROM jobs INDEXED BY jobs_held WHERE state = 'leased' AND jobs.holder > step.holder)
      FROM step WHERE step.holder IS NOT NULL
)
SELECT step.holder, holders.id, holders.id IS NOT NULL AND holders.died_ms IS NULL
  FROM step LEFT JOIN holders ON holders.seq = step.holder
 WHERE step.holder IS NOT NULL;
