-- expire_holder: expires holder ?1 if it has not renewed since renewal ?2 and its lease has expired at ?3. Contract: LeaseStore::expire_holder.
UPDATE holders SET died_ms = ?3
 WHERE id = ?1 AND died_ms IS NULL AND renewals = ?2 AND renewed_ms + lease_ttl_ms <= ?3;
