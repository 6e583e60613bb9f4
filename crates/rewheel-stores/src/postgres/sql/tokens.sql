-- tokens: reads every token, including ended ones, at the current time with clock offset $1. Contract: TokenStore::tokens.
SELECT id, name, roles, tenant, hash, created_ms, expires_ms, revoked_ms, rewheel.now_ms() + $1
  FROM rewheel.tokens ORDER BY name, created_ms;
