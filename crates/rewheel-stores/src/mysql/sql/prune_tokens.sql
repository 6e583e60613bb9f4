-- prune_tokens: deletes tokens that ended before a time; before another time if they were valid for some milliseconds or shorter. NULL,
-- no end, counts as the largest time.
DELETE FROM rewheel_tokens WHERE LEAST(COALESCE(revoked_ms, 9223372036854775807), COALESCE(expires_ms, 9223372036854775807))
 < CASE WHEN expires_ms - created_ms <= ? THEN ? ELSE ? END
