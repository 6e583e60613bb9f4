-- idempotency_insert: gives the new key $2 with fingerprint $3 to run $4, with a lease of $5, to expire after $6. Does nothing if the key
-- exists. Contract: IdempotencyStore::begin. $1 is the clock offset.
INSERT INTO rewheel.idempotency (key, fingerprint, run, leased_until_ms, ends_ms, answer)
SELECT $2, $3, $4, rewheel.later(now, $5), rewheel.later(now, greatest($5, $6)), ''
  FROM (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock      -- read once
 -- Checked first: ON CONFLICT alone would wait for a handler that stores its response inside its own transaction.
 WHERE NOT EXISTS (SELECT FROM rewheel.idempotency WHERE key = $2)
ON CONFLICT (key) DO NOTHING;       -- waits for transactions that insert the same key, and locks nothing
