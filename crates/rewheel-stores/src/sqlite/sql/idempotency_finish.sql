-- idempotency_finish: stores the response ?3 of run ?2 to key ?1, which the run still has, until ?4. Contract:
-- IdempotencyStore::finish.
UPDATE idempotency SET answer = ?3, leased_until_ms = NULL, ends_ms = ?4
 WHERE key = ?1 AND run = ?2 AND leased_until_ms IS NOT NULL;
