-- prune_tokens: forgets tokens that ended before $1. The least of two leaves out what is null.
DELETE FROM rewheel.tokens WHERE least(revoked_ms, expires_ms) < $1;
