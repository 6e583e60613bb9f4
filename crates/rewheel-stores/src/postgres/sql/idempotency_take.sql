-- idempotency_take: gives key $2 to run $4, as idempotency_insert does, in place of run $7, whose lease or retention has expired.
-- Contract: IdempotencyStore::begin, after StoredKey::judge. $1 is the clock offset.
UPDATE rewheel.idempotency
   SET fingerprint = $3, run = $4, leased_until_ms = rewheel.later(rewheel.now_ms() + $1, $5),
       ends_ms = rewheel.later(rewheel.now_ms() + $1, greatest($5, $6)), answer = ''
 WHERE key = $2 AND run = $7
       -- Checked again under the lock: run $7 may have renewed, or stored its response in its own transaction.
   AND (leased_until_ms <= rewheel.now_ms() + $1 OR leased_until_ms IS NULL AND ends_ms <= rewheel.now_ms() + $1);
