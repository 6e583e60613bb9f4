-- prune_limits: finds and locks limits under which no job was started since a time; a locked one is in use. There are few rows: one for
-- each kind and tenant with a limit. Contract: OperateStore::prune.
SELECT scope, name FROM rewheel_limits WHERE last_ms <= ? FOR UPDATE SKIP LOCKED
