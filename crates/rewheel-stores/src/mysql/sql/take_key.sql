-- take_key: gives an existing key to another job: it has expired, or its job gives it up.
UPDATE rewheel_keys SET job = ?, payload_hash = ?, state = NULL, expires_ms = NULL WHERE name = ?;
