-- claim_limited_make: creates missing rows of limits, with the last start $4 ago, so that the next start is allowed. $1 is the clock
-- offset; $2 and $3 name the limits, in locking order. Contract: WorkStore::claim_limited.
INSERT INTO rewheel.limits (scope, name, last_ms)
SELECT scope, name, rewheel.now_ms() + $1 - $4 FROM unnest($2::text[], $3::text[]) AS given (scope, name)
ON CONFLICT DO NOTHING;
