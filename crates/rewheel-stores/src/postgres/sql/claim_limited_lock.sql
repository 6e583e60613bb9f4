-- claim_limited_lock: locks the rows of limits in the order given, in which every claim locks them. $1 and $2 name them. Contract:
-- WorkStore::claim_limited. What is leased is counted by the next statement, which sees what was committed before the lock.
SELECT 1
  FROM unnest($1::text[], $2::text[]) AS given (scope, name),
       LATERAL (SELECT FROM rewheel.limits WHERE limits.scope = given.scope AND limits.name = given.name FOR UPDATE) AS locked;
