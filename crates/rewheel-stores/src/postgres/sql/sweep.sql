-- sweep: locks at most $2 jobs whose holder is not alive, or that are overdue at $1. Contract: LeaseStore::sweep.
-- Steps from one holder to the next in the index: it costs as much as there are holders, however many jobs they have.
WITH RECURSIVE step (holder) AS (
    SELECT (SELECT jobs.holder FROM rewheel.jobs WHERE state = 'leased' AND jobs.holder IS NOT NULL ORDER BY jobs.holder LIMIT 1)
    UNION ALL
    SELECT (SELECT jobs.holder FROM rewheel.jobs WHERE state = 'leased' AND jobs.holder > step.holder
             ORDER BY jobs.holder LIMIT 1)
      FROM step WHERE step.holder IS NOT NULL
),
holding AS MATERIALIZED (
    SELECT step.holder, holders.id AS holder_id,
           CASE WHEN holders.seq IS NOT NULL AND died_ms IS NULL THEN $1 ELSE 9223372036854775807 END AS until
      FROM step LEFT JOIN rewheel.holders ON holders.seq = step.holder
     WHERE step.holder IS NOT NULL
)
SELECT job.*, holding.holder_id
  FROM holding,
       LATERAL (SELECT id, lane, state, fence, wanted, attempt, takeovers, takeovers_counted, started_fence, holder, key
                  FROM rewheel.jobs
                 WHERE state = 'leased' AND jobs.holder = holding.holder AND overdue_ms <= holding.until
                 ORDER BY overdue_ms LIMIT $2 FOR UPDATE SKIP LOCKED) AS job
 LIMIT $2;
