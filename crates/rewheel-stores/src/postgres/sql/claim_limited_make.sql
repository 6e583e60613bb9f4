-- claim_limited_make: makes the rows of limits that are not there, as if the last start was $4 ago, which allows the next one. $1 moves
-- the clock; $2 and $3 name the limits, in the order in which they are locked. Contract: WorkStore::claim_limited.
INSERT INTO rewheel.limits (scope, name, last_ms)
SELECT scope, name, rewheel.now_ms() + $1 - $4 FROM unnest($2::text[], $3::text[]) AS given (scope, name)
ON CONFLICT DO NOTHING;
