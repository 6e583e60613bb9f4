-- prune_keys: at most $2 keys of ended jobs that have expired. Contract: OperateStore::prune.
WITH clock AS MATERIALIZED (SELECT rewheel.now_ms() + $1 AS now),
found AS MATERIALIZED (
    -- The time as a value, not a join: those that have not expired are not looked at.
    SELECT keys.ctid AS place FROM rewheel.keys WHERE expires_ms IS NOT NULL AND expires_ms <= (SELECT now FROM clock)
     ORDER BY expires_ms LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM rewheel.keys USING found WHERE keys.ctid = found.place;
