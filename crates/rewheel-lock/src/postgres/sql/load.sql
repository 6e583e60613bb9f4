-- load: reads the lock $1, the floor, and the server's clock. There is always one row; without the lock, its columns are null.
-- `clock_timestamp`, because `now` is the start of the transaction.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, floor.token,
       lock.version, lock.token, lock.holder, lock.owner, lock.until_ms, lock.lease_ms, lock.line
  FROM rewheel.lock_floor AS floor
  LEFT JOIN rewheel.locks AS lock ON lock.name = $1;
