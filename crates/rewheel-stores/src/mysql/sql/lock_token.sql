-- lock_token: reads and locks a token.
SELECT id, name, roles, tenant, hash, created_ms, expires_ms, revoked_ms FROM rewheel_tokens WHERE id = ? FOR UPDATE
