-- put_token: stores the digest of a token. A second one with its id or its name is an error. Contract: TokenStore::put_token.
INSERT INTO rewheel_tokens (id, name, valid_name, roles, tenant, hash, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
