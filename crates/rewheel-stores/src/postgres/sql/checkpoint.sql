-- checkpoint: replaces the payload of job $2 of holder $1. Contract: WorkStore::checkpoint.
UPDATE rewheel.jobs SET payload = $4, version = version + 1
 WHERE id = $2 AND fence = $3 AND state = 'leased'
   AND holder IS NOT DISTINCT FROM (SELECT seq FROM rewheel.holders WHERE id = $1);      -- not `=`: the plan must use the id
