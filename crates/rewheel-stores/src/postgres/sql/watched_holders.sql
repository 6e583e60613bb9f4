-- watched_holders: reads the living engines, and the living workers whose number modulo $2 is $3 or $4. Contract:
-- LeaseStore::watched_holders.
SELECT rewheel.now_ms() + $1, id, name, lease_ttl_ms, renewals, joined_ms, renewed_ms, died_ms, role, owner, format
  FROM rewheel.holders WHERE died_ms IS NULL AND (role = 'engine' OR seq % $2::int IN ($3, $4)) ORDER BY seq;
