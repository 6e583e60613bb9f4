-- renew: keeps a holder alive; one row, however many jobs it has. Contract: LeaseStore::renew.
UPDATE rewheel.holders SET renewals = renewals + 1, renewed_ms = rewheel.now_ms() + $2
 WHERE id = $1 AND died_ms IS NULL
RETURNING renewed_ms, seq, renewals;
