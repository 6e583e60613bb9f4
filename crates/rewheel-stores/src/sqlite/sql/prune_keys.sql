-- prune_keys: deletes at most ?2 keys of ended jobs that have expired at ?1. Contract: OperateStore::prune.
DELETE FROM keys WHERE (kind, tenant, key) IN
    (SELECT kind, tenant, key FROM keys INDEXED BY keys_expires WHERE expires_ms <= ?1 LIMIT ?2);
