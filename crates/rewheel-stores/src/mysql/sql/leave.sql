-- leave: deregisters a holder. Contract: LeaseStore::leave.
UPDATE rewheel_holders SET died_ms = ? WHERE id = ? AND died_ms IS NULL;
