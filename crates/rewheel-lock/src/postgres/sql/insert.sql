-- insert: writes the lock $1 if it has no row and the floor is still $8.
-- A process that was paused since `load` might not know the tokens of a row that was deleted meanwhile: the floor tells.
INSERT INTO rewheel.locks (name, version, token, holder, owner, until_ms, lease_ms, line)
SELECT $1, 1, $2, $3, $4, $5, $6, $7 FROM rewheel.lock_floor WHERE token = $8
    ON CONFLICT DO NOTHING
RETURNING 1;
