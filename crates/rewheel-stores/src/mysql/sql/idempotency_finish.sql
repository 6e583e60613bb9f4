-- idempotency_finish: stores the response of a run to a key that the run still has. Contract: IdempotencyStore::finish.
UPDATE rewheel_idempotency SET answer = ?, leased_until_ms = NULL, ends_ms = ?
 WHERE `key` = ? AND run = ? AND leased_until_ms IS NOT NULL
