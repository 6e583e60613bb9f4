-- watched_holders: reads the living engines, and the living workers whose number has one of two remainders. Contract:
-- LeaseStore::watched_holders.
SELECT id, name, lease_ttl_ms, renewals, joined_ms, renewed_ms, died_ms, role, owner, format FROM rewheel_holders
 WHERE died_ms IS NULL AND (role = 'engine' OR seq % ? IN (?, ?)) ORDER BY seq;
