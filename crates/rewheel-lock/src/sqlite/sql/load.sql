-- load: reads the lock ?1.
SELECT token, holder, owner, until_ms, lease_ms, line FROM rewheel_locks WHERE name = ?1;
