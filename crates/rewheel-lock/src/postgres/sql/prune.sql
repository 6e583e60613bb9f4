-- prune: deletes the locks that were free for $1 milliseconds, and remembers their largest token. Tests move the clock by $2.
WITH deleted AS (
    DELETE FROM rewheel.locks
     WHERE until_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2 - $1
    RETURNING token
)
UPDATE rewheel.lock_floor AS floor
   SET token = greatest(floor.token, (SELECT max(deleted.token) FROM deleted))
 WHERE EXISTS (SELECT FROM deleted);
