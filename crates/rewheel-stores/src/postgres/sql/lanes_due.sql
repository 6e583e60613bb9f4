-- lanes_due: the first $3 scheduled jobs that are due within $2, by lane; how many jobs those are, and
-- when the first behind them is due. $1 moves the clock. In the words of the index `jobs_soon`. Contract: WorkStore::lanes_due.
WITH clock AS MATERIALIZED (SELECT now, rewheel.later(now, $2) AS until FROM (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS read),
soon AS MATERIALIZED (
    SELECT lane, due_ms FROM rewheel.jobs
     WHERE shelf || '' = 'due' AND state = 'scheduled' AND due_ms + 0 <= (SELECT until FROM clock)
     ORDER BY due_ms + 0 LIMIT $3
)
SELECT now, (SELECT count(*) FROM soon),
       (SELECT due_ms FROM rewheel.jobs
         WHERE shelf || '' = 'due' AND state = 'scheduled' AND due_ms + 0 > (SELECT until FROM clock) ORDER BY due_ms + 0 LIMIT 1),
       head.due_ms, head.kind, head.tenant, head.priority, head.shard
  FROM clock
  LEFT JOIN (SELECT first.due_ms, kind, tenant, priority, shard
               FROM (SELECT lane, min(due_ms) AS due_ms FROM soon GROUP BY lane) AS first JOIN rewheel.lanes USING (lane)) AS head ON true;
