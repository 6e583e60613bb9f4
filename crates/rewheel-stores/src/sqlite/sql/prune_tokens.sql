-- prune_tokens: deletes tokens that ended before ?1. NULL, no end, counts as the largest time.
DELETE FROM tokens
 WHERE min(coalesce(revoked_ms, 9223372036854775807), coalesce(expires_ms, 9223372036854775807)) < ?1;
