-- idempotency_release: deletes a key that a run has. Contract: IdempotencyStore::release.
DELETE FROM rewheel_idempotency WHERE `key` = ? AND run = ? AND leased_until_ms IS NOT NULL
