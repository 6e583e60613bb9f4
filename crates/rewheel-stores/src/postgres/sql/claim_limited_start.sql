-- claim_limited_start: jobs were started at $1 under the limits that $2 and $3 name, whose rows are locked. Contract:
-- WorkStore::claim_limited.
UPDATE rewheel.limits SET last_ms = $1
  FROM unnest($2::text[], $3::text[]) AS given (scope, name)
 WHERE limits.scope = given.scope AND limits.name = given.name;
