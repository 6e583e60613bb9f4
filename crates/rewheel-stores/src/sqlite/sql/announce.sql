-- announce: somebody was told of a dead letter; of this death of it, not of another. Contract: OperateStore::announce.
UPDATE dead SET announced_ms = ?3 WHERE id = ?1 AND version = ?2 AND announced_ms IS NULL;
