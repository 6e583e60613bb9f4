-- tokens: reads every token, including ended ones. Contract: TokenStore::tokens.
SELECT id, name, roles, tenant, hash, created_ms, expires_ms, revoked_ms FROM rewheel_tokens ORDER BY name, created_ms
