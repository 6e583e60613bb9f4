-- idempotency_find: reads key $2 and the remaining time of its lease. Contract: IdempotencyStore::begin. $1 is the clock offset.
SELECT fingerprint, run, leased_until_ms - now AS left_ms, ends_ms <= now AS expired, answer
  FROM rewheel.idempotency CROSS JOIN (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock
 WHERE key = $2;
