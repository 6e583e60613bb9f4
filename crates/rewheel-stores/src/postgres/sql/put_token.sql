-- put_token: stores the digest of a token; does nothing if another token has its id or its name. Contract: TokenStore::put_token.
INSERT INTO rewheel.tokens (id, name, roles, tenant, hash, created_ms, expires_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT DO NOTHING;             -- two callers that use one name at once get a result, not an error
