-- renew: renews a holder's lease, in one row however many jobs it has. Contract: LeaseStore::renew.
UPDATE holders SET renewals = renewals + 1, renewed_ms = ?2 WHERE id = ?1 AND died_ms IS NULL RETURNING seq, renewals;
