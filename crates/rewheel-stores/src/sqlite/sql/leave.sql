-- leave: deregisters a holder. Contract: LeaseStore::leave.
UPDATE holders SET died_ms = ?2 WHERE id = ?1 AND died_ms IS NULL;
