-- prune_audit: of the oldest ?2 lines those from ?1 or before. Contract: OperateStore::prune.
DELETE FROM audit WHERE at_ms <= ?1 AND seq IN (SELECT seq FROM audit ORDER BY seq LIMIT ?2);
