-- lock_renewals: locks the heartbeats of a holder that is to be expired, without waiting: the caller must send its own.
SELECT renewals, renewed_ms FROM rewheel_renewals WHERE id = ? FOR UPDATE NOWAIT;
