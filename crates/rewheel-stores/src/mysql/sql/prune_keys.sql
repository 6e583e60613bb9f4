-- prune_keys: finds and locks expired keys of ended jobs. Concurrent calls find different keys. Contract: OperateStore::prune.
SELECT name FROM rewheel_keys FORCE INDEX (expires) WHERE expires_ms <= ? ORDER BY expires_ms LIMIT ? FOR UPDATE SKIP LOCKED
