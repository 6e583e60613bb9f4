-- idempotency_insert: gives a new key to a run. A key that exists is an error. Contract: IdempotencyStore::begin.
INSERT INTO rewheel_idempotency (`key`, fingerprint, run, leased_until_ms, ends_ms, answer) VALUES (?, ?, ?, ?, ?, '')
