-- idempotency_release: deletes key ?1, which run ?2 has. Contract: IdempotencyStore::release.
DELETE FROM idempotency WHERE key = ?1 AND run = ?2 AND leased_until_ms IS NOT NULL;
