-- prune_results: deletes at most $2 results whose retention has ended, and remembers for $3 ms that they existed. Rows that were
-- remembered long enough are deleted. Concurrent calls take different rows. $1 is the clock offset. Contract: OperateStore::prune.
WITH clock AS MATERIALIZED (SELECT rewheel.now_ms() + $1 AS now),
found AS MATERIALIZED (
    -- The time as a value, not as a join: then the index skips results that have not expired.
    SELECT results.ctid AS place, coalesce(content_type, dropped) IS NULL AS is_remembered
      FROM rewheel.results WHERE expires_ms <= (SELECT now FROM clock)
     ORDER BY expires_ms LIMIT $2 FOR UPDATE SKIP LOCKED
),
deleted AS (
    UPDATE rewheel.results
       SET content_type = NULL, dropped = NULL, body = NULL, expires_ms = rewheel.later((SELECT now FROM clock), $3)
      FROM found WHERE results.ctid = found.place AND NOT is_remembered
    RETURNING 1
),
forgotten AS (DELETE FROM rewheel.results USING found WHERE results.ctid = found.place AND is_remembered RETURNING 1)
SELECT (SELECT count(*) FROM deleted) + (SELECT count(*) FROM forgotten);
