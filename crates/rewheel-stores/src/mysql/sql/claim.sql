-- claim: reads and locks jobs of a lane that are due. Contract: WorkStore::claim. The caller leases them in the same transaction.
SELECT {claimed_job}, jobs.place
  FROM rewheel_jobs jobs FORCE INDEX (PRIMARY)                      -- one range, whatever the statistics say
 WHERE jobs.lane = ? AND jobs.place <= ? AND jobs.state = 0
   AND (jobs.deadline_ms IS NULL OR jobs.deadline_ms > ?)           -- the deadline sweep ends those
 ORDER BY jobs.place
 LIMIT ?
   FOR UPDATE SKIP LOCKED;                                          -- another claimer is not a reason to wait
