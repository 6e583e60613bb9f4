-- prune_audit: of the oldest $2 lines those that are $3 old or older. Contract: OperateStore::prune.
DELETE FROM rewheel.audit
 WHERE at_ms <= rewheel.now_ms() + $1 - $3 AND seq IN (SELECT seq FROM rewheel.audit ORDER BY seq LIMIT $2);
