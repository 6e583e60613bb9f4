-- idempotency_run: reads and locks which run has a key, or had it last. Contract: IdempotencyStore::finish.
SELECT run FROM rewheel_idempotency WHERE `key` = ? FOR UPDATE
