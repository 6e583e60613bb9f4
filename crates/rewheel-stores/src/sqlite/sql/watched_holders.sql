-- watched_holders: reads the living engines, and the living workers whose number modulo ?1 is ?2 or ?3. Contract:
-- LeaseStore::watched_holders.
SELECT id, name, lease_ttl_ms, renewals, joined_ms, renewed_ms, died_ms, role, owner, format FROM holders
 WHERE died_ms IS NULL AND (role = 'engine' OR seq % ?1 IN (?2, ?3)) ORDER BY seq;
