-- prune_tokens: deletes tokens that ended before $1. `least` ignores NULL.
DELETE FROM rewheel.tokens WHERE least(revoked_ms, expires_ms) < $1;
