-- prune_audit: reads the oldest audit entries. Contract: OperateStore::prune.
SELECT seq, at_ms FROM rewheel_audit ORDER BY seq LIMIT ?
