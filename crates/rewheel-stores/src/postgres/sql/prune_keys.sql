-- prune_keys: deletes at most $2 expired keys of ended jobs. Contract: OperateStore::prune.
WITH clock AS MATERIALIZED (SELECT rewheel.now_ms() + $1 AS now),
found AS MATERIALIZED (
    -- The time as a value, not as a join: then the index skips keys that have not expired.
    SELECT keys.ctid AS place FROM rewheel.keys WHERE expires_ms IS NOT NULL AND expires_ms <= (SELECT now FROM clock)
     ORDER BY expires_ms LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM rewheel.keys USING found WHERE keys.ctid = found.place;
