-- sweep: locks at most $2 jobs whose holder is dead, or that are overdue at $1 and were leased for at most $3. Contract:
-- LeaseStore::sweep. Steps from one holder to the next in the index: the cost depends on the number of holders, not of jobs.
WITH RECURSIVE step (holder) AS (
    SELECT (SELECT held_by FROM rewheel.jobs WHERE shelf = 'held' AND held_by IS NOT NULL ORDER BY held_by LIMIT 1)
    UNION ALL
    SELECT (SELECT held_by FROM rewheel.jobs WHERE shelf = 'held' AND held_by > step.holder ORDER BY held_by LIMIT 1)
      FROM step WHERE step.holder IS NOT NULL
),
holding AS MATERIALIZED (
    SELECT step.holder, holders.id AS holder_id,
           CASE WHEN holders.seq IS NOT NULL AND died_ms IS NULL THEN $1 ELSE 9223372036854775807 END AS until,
           CASE WHEN holders.seq IS NOT NULL AND died_ms IS NULL THEN $3 ELSE 9223372036854775807 END AS hold_max
      FROM step LEFT JOIN rewheel.holders ON holders.seq = step.holder
     WHERE step.holder IS NOT NULL
)
SELECT job.*, holding.holder_id
  FROM holding,
       LATERAL (SELECT id, lane, state, fence, wanted, attempt, takeovers, takeovers_counted, started_fence, holder, key,
                       group_key IS NOT NULL AS grouped, settled_fence IS NULL AS unsettled, version
                  FROM rewheel.jobs
                 WHERE shelf = 'held' AND held_by = holding.holder AND held_until_ms <= holding.until
                   AND held_until_ms - leased_ms <= holding.hold_max
                 ORDER BY held_until_ms LIMIT $2 FOR UPDATE SKIP LOCKED) AS job
 LIMIT $2;
