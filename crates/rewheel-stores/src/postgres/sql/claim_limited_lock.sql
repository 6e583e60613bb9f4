-- claim_limited_lock: locks the rows of limits $1, $2 in the given order, which is the same for every claim. Contract:
-- WorkStore::claim_limited. The next statement counts the leased jobs, so that it sees everything that was committed before the lock.
SELECT 1
  FROM unnest($1::text[], $2::text[]) AS given (scope, name),
       LATERAL (SELECT FROM rewheel.limits WHERE limits.scope = given.scope AND limits.name = given.name FOR UPDATE) AS locked;
