-- revoke_token: revokes a token, and makes its name free. Contract: TokenStore::revoke_token.
UPDATE rewheel_tokens SET revoked_ms = ?, valid_name = NULL WHERE id = ?
