-- update: writes a lock if its version is still the last parameter.
UPDATE rewheel_locks SET version = version + 1, token = ?, holder = ?, owner = ?, until_ms = ?, lease_ms = ?, line = ?
 WHERE name = ? AND version = ?
