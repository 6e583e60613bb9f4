-- idempotency_take: gives key ?1 with fingerprint ?2 to run ?3, leased until ?4, to expire at ?5. Contract: IdempotencyStore::begin,
-- after StoredKey::judge.
INSERT INTO idempotency (key, fingerprint, run, leased_until_ms, ends_ms, answer) VALUES (?1, ?2, ?3, ?4, ?5, x'')
ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, run = excluded.run,
    leased_until_ms = excluded.leased_until_ms, ends_ms = excluded.ends_ms, answer = excluded.answer;
