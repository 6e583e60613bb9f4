-- insert: writes a lock if the floor is still the last parameter; if it has a row, this fails. A process that was paused since `load` might not
-- know the tokens of a row that was deleted meanwhile: the floor tells. With a lock on the floor: it must not rise before this is written.
INSERT INTO rewheel_locks (name, version, token, holder, owner, until_ms, lease_ms, line)
SELECT ?, 1, ?, ?, ?, ?, ?, ? FROM rewheel_lock_floor WHERE token = ? LOCK IN SHARE MODE
