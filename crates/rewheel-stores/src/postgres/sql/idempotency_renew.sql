-- idempotency_renew: extends the lease of run $3 on key $2 to $4 from now. Contract: IdempotencyStore::renew. $1 is the clock offset.
UPDATE rewheel.idempotency
   SET leased_until_ms = rewheel.later(rewheel.now_ms() + $1, $4),
       ends_ms = greatest(ends_ms, rewheel.later(rewheel.now_ms() + $1, $4) + 1)      -- the clock may have advanced between the two
 WHERE key = $2 AND run = $3 AND leased_until_ms IS NOT NULL;
