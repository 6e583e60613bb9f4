-- claim_limited_lock: locks a limit: claims under it run one after the other.
SELECT last_ms FROM rewheel_limits WHERE scope = ? AND name = ? FOR UPDATE;
