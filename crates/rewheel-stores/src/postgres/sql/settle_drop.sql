-- settle_drop: jobs that succeeded, and are not kept. Contract: WorkStore::settle. $1 is the holder, $2 moves the clock,
-- $3, $4 and $5 are ids, fences and places, $6 says how long to keep their keys.
WITH clock AS MATERIALIZED (SELECT rewheel.now_ms() + $2 AS now),
holder AS MATERIALIZED (SELECT seq FROM rewheel.holders WHERE id = $1),
-- The place is where whoever claimed it saw it last: whatever is there now must be this job under this fence. One that has
-- moved is settled the long way. `IS NOT DISTINCT` is what no index can answer: nothing is looked for but the place.
found AS MATERIALIZED (
    SELECT given.id, given.fence, coalesce(given.place, (SELECT jobs.ctid FROM rewheel.jobs WHERE jobs.id = given.id)) AS place
      FROM unnest($3::uuid[], $4::bigint[], $5::tid[]) AS given (id, fence, place)
     WHERE EXISTS (SELECT FROM holder)
),
gone AS (
    DELETE FROM rewheel.jobs USING found
     WHERE jobs.ctid = found.place AND jobs.id IS NOT DISTINCT FROM found.id AND jobs.fence = found.fence
       AND holder IS NOT DISTINCT FROM (SELECT seq FROM holder)
    RETURNING jobs.id, lane, key, jobs.fence
),
-- Under its first fence nothing has failed yet; later something may have, even if it did not count.
tries AS (
    DELETE FROM rewheel.attempts
     USING gone, LATERAL (SELECT attempts.ctid AS place FROM rewheel.attempts WHERE attempts.job = gone.id OFFSET 0) AS tried
     WHERE gone.fence > 1 AND attempts.ctid = tried.place
),
ended AS (
    UPDATE rewheel.keys SET state = 'succeeded', expires_ms = rewheel.later(now, $6)
      FROM clock, (SELECT gone.id, key, kind, tenant FROM gone, rewheel.lanes
                    WHERE key IS NOT NULL AND lanes.lane = gone.lane OFFSET 0) AS job,
           LATERAL (SELECT keys.ctid AS place FROM rewheel.keys
                     WHERE keys.kind = job.kind AND keys.tenant = job.tenant AND keys.key = job.key
                       AND keys.job = job.id OFFSET 0) AS known
     WHERE keys.ctid = known.place
),
line AS (
    INSERT INTO rewheel.ledger (at_ms, submitted, pruned)
    SELECT now, 0, pruned FROM clock, (SELECT count(*) AS pruned FROM gone) AS counted WHERE pruned > 0
)
SELECT ARRAY (SELECT id FROM gone);
