-- revoke_token: takes a token back, unless somebody did before. Contract: TokenStore::revoke_token.
UPDATE rewheel.tokens SET revoked_ms = $2 WHERE id = $1 AND revoked_ms IS NULL;
