-- lock_holder: locks a holder that is to be expired. A node that leases jobs to it has the lock for a moment; one that was paused in the
-- middle keeps it, and this statement does not wait, because the caller must send its own heartbeats.
SELECT renewals, renewed_ms, lease_ttl_ms, died_ms FROM rewheel_holders WHERE id = ? FOR UPDATE NOWAIT;
