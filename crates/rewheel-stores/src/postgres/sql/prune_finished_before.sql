-- prune_finished_before: as `prune_finished`, for jobs that a node of an older release ended. Contract: OperateStore::prune.
WITH clock AS MATERIALIZED (SELECT rewheel.now_ms() + $1 AS now),
found AS MATERIALIZED (
    -- The time as a value, not as a join: then the index skips jobs that have not expired.
    SELECT finished_before.ctid AS place FROM rewheel.finished_before WHERE expires_ms <= (SELECT now FROM clock)
     ORDER BY expires_ms LIMIT $2 FOR UPDATE SKIP LOCKED
),
gone AS (DELETE FROM rewheel.finished_before USING found WHERE finished_before.ctid = found.place RETURNING id),
tries AS (
    DELETE FROM rewheel.attempts
     USING gone, LATERAL (SELECT attempts.ctid AS place FROM rewheel.attempts WHERE attempts.job = gone.id OFFSET 0) AS tried
     WHERE attempts.ctid = tried.place
),
counted AS (SELECT count(*) AS pruned FROM gone),
line AS (
    INSERT INTO rewheel.ledger (at_ms, submitted, pruned) SELECT now, 0, pruned FROM clock, counted WHERE pruned > 0
)
SELECT pruned FROM counted;
