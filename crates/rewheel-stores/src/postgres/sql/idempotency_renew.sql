-- idempotency_renew: prolongs by $4 from now on the lease on key $2 of run $3, which has it. Contract: IdempotencyStore::renew.
-- $1 moves the clock.
UPDATE rewheel.idempotency
   SET leased_until_ms = rewheel.later(rewheel.now_ms() + $1, $4),
       ends_ms = greatest(ends_ms, rewheel.later(rewheel.now_ms() + $1, $4) + 1)      -- the clock may have moved between the two
 WHERE key = $2 AND run = $3 AND leased_until_ms IS NOT NULL;
