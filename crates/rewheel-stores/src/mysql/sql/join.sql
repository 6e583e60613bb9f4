-- join: registers a holder. Contract: LeaseStore::join. Repeating it changes nothing.
INSERT INTO rewheel_holders (id, name, lease_ttl_ms, joined_ms, role, owner, format)
VALUES (?, ?, ?, ?, ?, ?, ?)
    ON DUPLICATE KEY UPDATE rewheel_holders.id = rewheel_holders.id;
