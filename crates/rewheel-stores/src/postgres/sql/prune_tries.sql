-- prune_tries: deletes the records of failed attempts of the next $2 jobs in the expired bin $1 that may have any, and returns the number
-- of these jobs. Returns NULL if another node works on this bin. Contract: OperateStore::prune.
WITH mine AS MATERIALIZED (SELECT tries_fence, tries_id FROM rewheel.bins WHERE bin = $1 FOR UPDATE SKIP LOCKED),
tried AS MATERIALIZED (
    SELECT job.fence, job.id
      FROM mine, LATERAL (SELECT fence, id FROM rewheel.finished_bins
                           WHERE bin = $1 AND fence > 1 AND (fence, id) > (mine.tries_fence, mine.tries_id)
                           ORDER BY fence, id LIMIT $2) AS job
),
gone AS (
    DELETE FROM rewheel.attempts
     USING tried, LATERAL (SELECT attempts.ctid AS place FROM rewheel.attempts WHERE attempts.job = tried.id OFFSET 0) AS found
     WHERE attempts.ctid = found.place
),
seen AS (
    UPDATE rewheel.bins SET tries_fence = last.fence, tries_id = last.id
      FROM (SELECT fence, id FROM tried ORDER BY fence DESC, id DESC LIMIT 1) AS last
     WHERE bins.bin = $1
)
SELECT CASE WHEN EXISTS (SELECT FROM mine) THEN (SELECT count(*) FROM tried) END;
