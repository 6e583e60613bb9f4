-- prune_audit: deletes those of the oldest ?2 audit entries that are from ?1 or earlier. Contract: OperateStore::prune.
DELETE FROM audit WHERE at_ms <= ?1 AND seq IN (SELECT seq FROM audit ORDER BY seq LIMIT ?2);
