-- settle_keep: jobs that succeeded move to the finished ones. Contract: WorkStore::settle. $1 is the holder, $2 moves the
-- clock, $3, $4 and $5 are ids, fences and places, $6 and $7 how long to keep the jobs and their keys.
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
    RETURNING jobs.*
),
kept AS (
    INSERT INTO rewheel.finished (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                                  takeovers_counted, settled_by, settled_fence, created_ms, deadline_ms, attempts_max,
                                  attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
                                  failure_message, ended_ms, expires_ms, payload)
    SELECT id, lane, 'succeeded', due_ms, because, fence, version + 1, attempt + 1, attempts_before, takeovers,
           takeovers_counted, holder, fence, created_ms, deadline_ms, attempts_max,
           attempt_timeout_ms, backoff, key, shard_key, traceparent, failure_category, failure_code,
           failure_message, now, rewheel.later(now, $6), payload
      FROM gone, clock
),
ended AS (
    UPDATE rewheel.keys SET state = 'succeeded', expires_ms = rewheel.later(now, $7)
      FROM clock, (SELECT gone.id, key, kind, tenant FROM gone, rewheel.lanes
                    WHERE key IS NOT NULL AND lanes.lane = gone.lane OFFSET 0) AS job,
           LATERAL (SELECT keys.ctid AS place FROM rewheel.keys
                     WHERE keys.kind = job.kind AND keys.tenant = job.tenant AND keys.key = job.key
                       AND keys.job = job.id OFFSET 0) AS known
     WHERE keys.ctid = known.place
)
SELECT ARRAY (SELECT id FROM gone);
