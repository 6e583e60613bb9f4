-- prune_finished: finds and locks finished jobs whose retention has ended. Concurrent calls find different jobs. Contract:
-- OperateStore::prune.
SELECT id, parent, group_key FROM rewheel_finished FORCE INDEX (expires) WHERE expires_ms <= ? ORDER BY expires_ms LIMIT ?
   FOR UPDATE SKIP LOCKED
