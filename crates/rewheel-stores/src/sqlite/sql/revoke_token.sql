-- revoke_token: revokes a token. Contract: TokenStore::revoke_token.
UPDATE tokens SET revoked_ms = ?2 WHERE id = ?1;
