-- prune_holders: deletes at most $2 holders that died $3 ago or earlier. Contract: OperateStore::prune.
WITH found AS MATERIALIZED (
    SELECT holders.ctid AS place FROM rewheel.holders WHERE died_ms <= rewheel.now_ms() + $1 - $3 ORDER BY seq LIMIT $2
)
DELETE FROM rewheel.holders USING found WHERE holders.ctid = found.place;
