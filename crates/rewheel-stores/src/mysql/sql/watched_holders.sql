-- watched_holders: reads the living engines, and the living workers whose number has one of two remainders. Contract:
-- LeaseStore::watched_holders.
SELECT holders.id, name, lease_ttl_ms, COALESCE(renewals, 0), joined_ms, COALESCE(renewed_ms, joined_ms), died_ms, role, owner, format
  FROM rewheel_holders AS holders LEFT JOIN rewheel_renewals AS renewals ON renewals.id = holders.id
 WHERE died_ms IS NULL AND (role = 'engine' OR seq % ? IN (?, ?)) ORDER BY seq;
