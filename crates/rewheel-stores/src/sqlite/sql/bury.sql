-- bury: holder ?1 dies, if it has not renewed since ?2 and is silent at ?3. Contract: LeaseStore::bury.
UPDATE holders SET died_ms = ?3
 WHERE id = ?1 AND died_ms IS NULL AND renewals = ?2 AND renewed_ms + lease_ttl_ms <= ?3;
