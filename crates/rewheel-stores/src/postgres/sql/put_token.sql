-- put_token: a token, as its digest; nothing where another has its id or its name. Contract: TokenStore::put_token.
INSERT INTO rewheel.tokens (id, name, roles, tenant, hash, created_ms, expires_ms) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT DO NOTHING;             -- two who take a name at once are told so, not by an error
