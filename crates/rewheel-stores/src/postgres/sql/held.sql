-- held: reads the jobs that holder $1 has had for $3 or longer (all if that is 0), by id after $4. Contract: WorkStore::held.
-- None has been overdue since $6.
-- MATERIALIZED: finds them by holder and then sorts; the planner would prefer a scan of all jobs by id.
WITH held AS MATERIALIZED (
    SELECT id, fence FROM rewheel.jobs
     WHERE shelf = 'held' AND held_by = (SELECT seq FROM rewheel.holders WHERE holders.id = $1) AND held_until_ms >= $6
       AND ($3 = 0 OR leased_ms <= rewheel.now_ms() + $2 - $3) AND ($4::uuid IS NULL OR id > $4)
)
SELECT id, fence FROM held ORDER BY id LIMIT $5;
