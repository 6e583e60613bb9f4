-- trim_attempts: keeps only the first $2 and the last $3 attempt records of jobs $1; the oldest of the last ones counts the dropped
-- records. Contract: WorkStore::settle.
WITH ranked AS MATERIALIZED (
    SELECT ctid AS place, job, dropped, row_number() OVER (PARTITION BY job ORDER BY seq) AS from_first,
           row_number() OVER (PARTITION BY job ORDER BY seq DESC) AS from_last
      FROM rewheel.attempts WHERE job = ANY ($1)
),
-- The sum over a job's own records, not a join with them: a batch may have a hundred thousand records.
counted AS MATERIALIZED (
    SELECT place, from_last, from_first > $2 AND from_last > $3 AS goes,
           sum(CASE WHEN from_first > $2 AND from_last > $3 THEN 1 + dropped ELSE 0 END) OVER (PARTITION BY job)::bigint AS lost
      FROM ranked
),
gone AS (
    DELETE FROM rewheel.attempts USING counted WHERE attempts.ctid = counted.place AND goes
)
UPDATE rewheel.attempts SET dropped = attempts.dropped + counted.lost
  FROM counted WHERE attempts.ctid = counted.place AND from_last = $3 AND lost > 0;
