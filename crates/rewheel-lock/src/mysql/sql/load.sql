-- load: reads the floor, the server's clock, and the lock ?. There is always one row; without the lock, its columns are null.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), floor.token,
       held.version, held.token, held.holder, held.owner, held.until_ms, held.lease_ms, held.line
  FROM rewheel_lock_floor floor LEFT JOIN rewheel_locks held ON held.name = ?
