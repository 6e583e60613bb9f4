-- idempotency_renew: extends the lease of a run on a key. Contract: IdempotencyStore::renew.
UPDATE rewheel_idempotency SET ends_ms = GREATEST(ends_ms, ?), leased_until_ms = ?
 WHERE `key` = ? AND run = ? AND leased_until_ms IS NOT NULL
