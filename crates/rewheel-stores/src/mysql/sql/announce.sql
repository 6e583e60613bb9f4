-- announce: marks a dead letter as announced, only for the given death. Contract: OperateStore::announce.
UPDATE rewheel_dead SET announced_ms = ? WHERE id = ? AND version = ? AND announced_ms = 0
