-- prune_limits: deletes limits under which no job was started since ?1. There are few rows: one for each kind and tenant with a limit.
-- Contract: OperateStore::prune.
DELETE FROM limits WHERE last_ms <= ?1;
