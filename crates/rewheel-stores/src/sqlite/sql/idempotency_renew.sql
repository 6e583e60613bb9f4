-- idempotency_renew: leases key ?1 until ?3 to run ?2, which has it. Contract: IdempotencyStore::renew.
UPDATE idempotency SET leased_until_ms = ?3, ends_ms = max(ends_ms, ?3)
 WHERE key = ?1 AND run = ?2 AND leased_until_ms IS NOT NULL;
