-- prune_tokens: deletes tokens that ended before ?1, or before ?2 if they were valid for ?3 milliseconds or shorter. NULL, no end,
-- counts as the largest time.
DELETE FROM tokens
 WHERE min(coalesce(revoked_ms, 9223372036854775807), coalesce(expires_ms, 9223372036854775807))
     < CASE WHEN expires_ms - created_ms <= ?3 THEN ?2 ELSE ?1 END;
