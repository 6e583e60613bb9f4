-- leave_renewals: ends the heartbeats of a holder that is being deregistered. Contract: LeaseStore::leave.
UPDATE rewheel_renewals SET dead = 1 WHERE id = ?;
