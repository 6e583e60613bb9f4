-- revoke_token: revokes a token, unless it is revoked already. Contract: TokenStore::revoke_token.
UPDATE rewheel.tokens SET revoked_ms = $2 WHERE id = $1 AND revoked_ms IS NULL;
