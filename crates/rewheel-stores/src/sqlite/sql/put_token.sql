-- put_token: stores the digest of a token. Contract: TokenStore::put_token.
INSERT INTO tokens (id, name, roles, tenant, hash, created_ms, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);
