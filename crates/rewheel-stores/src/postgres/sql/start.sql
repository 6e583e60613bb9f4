-- start: records that jobs of holder $1 start. Contract: WorkStore::start.
WITH holder AS MATERIALIZED (SELECT seq FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL FOR KEY SHARE)
UPDATE rewheel.jobs SET started_fence = given.fence
  FROM unnest($2::uuid[], $3::bigint[]) AS given (id, fence)
 WHERE jobs.id = given.id AND jobs.fence = given.fence AND EXISTS (SELECT FROM holder)
   AND holder IS NOT DISTINCT FROM (SELECT seq FROM holder)            -- not `=`: jobs are found by their id
RETURNING jobs.id, jobs.fence;
