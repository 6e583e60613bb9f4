-- expire_renewals: ends the heartbeats of a holder, unless it has sent another one. Contract: LeaseStore::expire_holder.
UPDATE rewheel_renewals SET dead = 1 WHERE id = ? AND dead = 0 AND renewals = ?;
