-- trim_attempts: keeps only the first $2 and the last $3 attempt records of jobs $1; the oldest of the last ones counts the dropped
-- records. Contract: WorkStore::settle.
WITH ranked AS MATERIALIZED (
    SELECT ctid AS place, job, dropped, row_number() OVER (PARTITION BY job ORDER BY seq) AS from_first,
           row_number() OVER (PARTITION BY job ORDER BY seq DESC) AS from_last
      FROM rewheel.attempts WHERE job = ANY ($1)
),
gone AS (
    DELETE FROM rewheel.attempts USING ranked
     WHERE attempts.ctid = ranked.place AND from_first > $2 AND from_last > $3
    RETURNING ranked.job, ranked.dropped
)
UPDATE rewheel.attempts SET dropped = attempts.dropped + lost.records
  FROM (SELECT job, count(*) + sum(dropped)::bigint AS records FROM gone GROUP BY job) AS lost, ranked
 WHERE ranked.job = lost.job AND ranked.from_last = $3 AND attempts.ctid = ranked.place;
