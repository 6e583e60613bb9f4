-- tally_due: reads the earliest due time of the scheduled jobs of kinds $1. Contract: ReadStore::tally.
SELECT kind, min(first.due_ms)
  FROM rewheel.lanes,
       LATERAL (SELECT jobs.due_ms FROM rewheel.jobs WHERE shelf = 'due' AND state = 'scheduled' AND jobs.lane = lanes.lane
                 ORDER BY jobs.due_ms LIMIT 1) AS first
 WHERE kind = ANY ($1::text[])
 GROUP BY kind;
