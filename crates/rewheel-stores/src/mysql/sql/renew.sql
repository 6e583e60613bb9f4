-- renew: renews a holder's lease, in one row however many jobs it has. Contract: LeaseStore::renew.
UPDATE rewheel_renewals SET renewals = renewals + 1, renewed_ms = ? WHERE id = ? AND dead = 0;
