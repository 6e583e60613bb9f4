-- claim_limited_start: records that jobs were started at $1 under limits $2, $3, whose rows are locked. Contract:
-- WorkStore::claim_limited.
UPDATE rewheel.limits SET last_ms = $1
  FROM unnest($2::text[], $3::text[]) AS given (scope, name)
 WHERE limits.scope = given.scope AND limits.name = given.name;
