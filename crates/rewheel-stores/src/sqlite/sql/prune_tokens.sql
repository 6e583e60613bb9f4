-- prune_tokens: forgets tokens that ended before ?1. One that never ends is far from it.
DELETE FROM tokens
 WHERE min(coalesce(revoked_ms, 9223372036854775807), coalesce(expires_ms, 9223372036854775807)) < ?1;
