-- prune_limits: limits under which no job was started since ?1: few, one for each kind and tenant with a limit.
-- Contract: OperateStore::prune.
DELETE FROM limits WHERE last_ms <= ?1;
