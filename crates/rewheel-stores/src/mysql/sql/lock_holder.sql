-- lock_holder: locks a holder that is to be expired, without waiting: the caller must send its own heartbeats.
SELECT lease_ttl_ms, died_ms FROM rewheel_holders WHERE id = ? FOR UPDATE NOWAIT;
