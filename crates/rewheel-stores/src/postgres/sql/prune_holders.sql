-- prune_holders: at most $2 holders that died $3 ago or earlier. Contract: OperateStore::prune.
DELETE FROM rewheel.holders
 WHERE seq IN (SELECT seq FROM rewheel.holders WHERE died_ms <= rewheel.now_ms() + $1 - $3 ORDER BY seq LIMIT $2);
