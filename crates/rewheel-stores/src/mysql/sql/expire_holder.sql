-- expire_holder: marks a holder as dead. Contract: LeaseStore::expire_holder.
UPDATE rewheel_holders SET died_ms = ? WHERE id = ? AND died_ms IS NULL;
