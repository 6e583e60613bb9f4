-- prune_keys: at most $2 keys of ended jobs that have expired. Contract: OperateStore::prune.
WITH found AS MATERIALIZED (
    SELECT keys.ctid AS place FROM rewheel.keys, (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock
     WHERE expires_ms IS NOT NULL AND expires_ms <= now ORDER BY expires_ms LIMIT $2 FOR UPDATE OF keys SKIP LOCKED
)
DELETE FROM rewheel.keys USING found WHERE keys.ctid = found.place;
