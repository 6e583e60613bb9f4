-- join_renewals: begins the heartbeats of a holder that is being registered. Contract: LeaseStore::join. Repeating it changes nothing.
INSERT INTO rewheel_renewals (id, renewals, renewed_ms) VALUES (?, 0, ?)
    ON DUPLICATE KEY UPDATE rewheel_renewals.id = rewheel_renewals.id;
