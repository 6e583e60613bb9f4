-- revoke_token: takes a token back. Contract: TokenStore::revoke_token.
UPDATE tokens SET revoked_ms = ?2 WHERE id = ?1;
