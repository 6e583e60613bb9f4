-- idempotency_insert: gives key $2 to run $4, for what $3 stands for, with a lease of $5, to be forgotten after $6, unless it is known.
-- Contract: IdempotencyStore::begin. $1 moves the clock.
INSERT INTO rewheel.idempotency (key, fingerprint, run, leased_until_ms, ends_ms, answer)
SELECT $2, $3, $4, rewheel.later(now, $5), rewheel.later(now, greatest($5, $6)), ''
  FROM (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock      -- read once
 -- Looked for first: the conflict alone would wait for a handler that stores the answer with its own transaction.
 WHERE NOT EXISTS (SELECT FROM rewheel.idempotency WHERE key = $2)
ON CONFLICT (key) DO NOTHING;       -- waits for those who insert the same key, and locks nothing
