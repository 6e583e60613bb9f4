-- idempotency_find: reads a key. Contract: IdempotencyStore::begin.
SELECT fingerprint, run, leased_until_ms, ends_ms, answer FROM rewheel_idempotency WHERE `key` = ?
