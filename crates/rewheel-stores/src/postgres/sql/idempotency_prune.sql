-- idempotency_prune: deletes at most $2 expired keys. Contract: IdempotencyStore::prune. $1 is the clock offset.
-- A lease never ends later than its key.
WITH clock AS MATERIALIZED (SELECT rewheel.now_ms() + $1 AS now),
found AS MATERIALIZED (
    SELECT idempotency.ctid AS place FROM rewheel.idempotency WHERE ends_ms <= (SELECT now FROM clock)
     ORDER BY ends_ms LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM rewheel.idempotency USING found WHERE idempotency.ctid = found.place;
