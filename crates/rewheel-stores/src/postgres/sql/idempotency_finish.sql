-- idempotency_finish: stores the response $4 of run $3 to key $2, which the run still has, for the time $5. Contract:
-- IdempotencyStore::finish. $1 is the clock offset.
UPDATE rewheel.idempotency
   SET answer = $4, leased_until_ms = NULL, ends_ms = rewheel.later(rewheel.now_ms() + $1, $5)
 WHERE key = $2 AND run = $3 AND leased_until_ms IS NOT NULL;
