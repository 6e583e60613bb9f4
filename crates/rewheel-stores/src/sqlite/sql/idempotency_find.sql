-- idempotency_find: reads key ?1. Contract: IdempotencyStore::begin.
SELECT fingerprint, run, leased_until_ms, ends_ms, answer FROM idempotency WHERE key = ?1;
