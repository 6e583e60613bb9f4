-- held: what holder $1 has for $3 or longer (all if that is 0), by id behind $4. Contract: WorkStore::held.
-- Found by the holder, then put in order: looking through all jobs in the order of their ids would seem cheaper.
WITH held AS MATERIALIZED (
    SELECT id, fence FROM rewheel.jobs
     WHERE shelf = 'held' AND held_by = (SELECT seq FROM rewheel.holders WHERE holders.id = $1)
       AND ($3 = 0 OR leased_ms <= rewheel.now_ms() + $2 - $3) AND ($4::uuid IS NULL OR id > $4)
)
SELECT id, fence FROM held ORDER BY id LIMIT $5;
