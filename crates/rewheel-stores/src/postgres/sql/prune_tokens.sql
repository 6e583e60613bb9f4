-- prune_tokens: deletes tokens that ended before $1, or before $2 if they were valid for $3 milliseconds or shorter. `least` ignores NULL.
DELETE FROM rewheel.tokens
 WHERE least(revoked_ms, expires_ms) < CASE WHEN expires_ms - created_ms <= $3 THEN $2 ELSE $1 END;
