-- idempotency_renew: renews the lease of run ?2 on key ?1, until ?3. Contract: IdempotencyStore::renew.
UPDATE idempotency SET leased_until_ms = ?3, ends_ms = max(ends_ms, ?3)
 WHERE key = ?1 AND run = ?2 AND leased_until_ms IS NOT NULL;
