-- announce: marks a dead letter as announced, only for the given death. Contract: OperateStore::announce.
UPDATE dead SET announced_ms = ?3 WHERE id = ?1 AND version = ?2 AND announced_ms IS NULL;
