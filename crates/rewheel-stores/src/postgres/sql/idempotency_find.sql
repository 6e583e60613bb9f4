-- idempotency_find: what is known of key $2, with what is left of its lease. Contract: IdempotencyStore::begin. $1 moves the clock.
SELECT fingerprint, run, leased_until_ms - now AS left_ms, ends_ms <= now AS expired, answer
  FROM rewheel.idempotency CROSS JOIN (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock
 WHERE key = $2;
