-- start: records that jobs of holder $1 start. Contract: WorkStore::start.
WITH holder AS MATERIALIZED (SELECT seq FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL FOR KEY SHARE)
UPDATE rewheel.jobs SET started_fence = fence, shelf = 'held', held_by = jobs.holder, held_until_ms = overdue_ms
 WHERE id = ANY ($2::uuid[]) AND EXISTS (SELECT FROM holder)
   AND holder IS NOT DISTINCT FROM (SELECT seq FROM holder)            -- not `=`, so that the plan looks up jobs by id
   AND fence = ANY (SELECT given.fence FROM unnest($2::uuid[], $3::bigint[]) AS given (id, fence) WHERE given.id = jobs.id)
RETURNING jobs.id, jobs.fence;
