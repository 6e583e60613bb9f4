-- update: writes the lock $1 if its version is still $8, and wakes the request $10 by the channel $9, if there is one.
WITH saved AS (
    UPDATE rewheel.locks
       SET version = version + 1, token = $2, holder = $3, owner = $4, until_ms = $5, lease_ms = $6, line = $7
     WHERE name = $1 AND version = $8
    RETURNING 1
)
-- PostgreSQL commits transactions that notify one after the other, so a change that wakes no request sends no notification.
SELECT CASE WHEN $10 <> '' THEN pg_notify($9, $10) END FROM saved;
