-- idempotency_prune: deletes at most ?2 keys that have expired at ?1. Contract: IdempotencyStore::prune.
-- A lease never ends later than its key.
DELETE FROM idempotency WHERE key IN
    (SELECT key FROM idempotency INDEXED BY idempotency_ends WHERE ends_ms <= ?1 ORDER BY ends_ms LIMIT ?2);
