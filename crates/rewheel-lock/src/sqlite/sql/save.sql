-- save: writes the lock ?1.
INSERT INTO rewheel_locks (name, token, holder, owner, until_ms, lease_ms, line) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (name) DO UPDATE
    SET (token, holder, owner, until_ms, lease_ms, line) =
        (excluded.token, excluded.holder, excluded.owner, excluded.until_ms, excluded.lease_ms, excluded.line);
