-- idempotency_prune: finds and locks expired keys, the oldest first. Contract: IdempotencyStore::prune.
-- A lease never ends later than its key.
SELECT `key` FROM rewheel_idempotency FORCE INDEX (ends) WHERE ends_ms <= ? ORDER BY ends_ms LIMIT ? FOR UPDATE SKIP LOCKED
