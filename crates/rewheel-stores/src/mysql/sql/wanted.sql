-- wanted: reads what users want of the jobs of a holder.
SELECT jobs.id, jobs.fence, jobs.wanted
  FROM rewheel_wanted wanted STRAIGHT_JOIN rewheel_jobs jobs FORCE INDEX (id) ON jobs.id = wanted.job
 WHERE wanted.holder = ? AND jobs.holder = wanted.holder AND jobs.wanted <> 0 LIMIT ?;
