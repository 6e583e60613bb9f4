-- idempotency_take: gives a key to a run in place of another, whose lease or retention has expired. Contract: IdempotencyStore::begin,
-- after StoredKey::judge. The condition is checked again under the lock: the other run may have renewed, or stored its response.
UPDATE rewheel_idempotency SET fingerprint = ?, run = ?, leased_until_ms = ?, ends_ms = ?, answer = ''
 WHERE `key` = ? AND run = ? AND (leased_until_ms <= ? OR leased_until_ms IS NULL AND ends_ms <= ?)
