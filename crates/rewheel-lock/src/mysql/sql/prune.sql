-- prune: deletes a lock, after `raise_floor`, if its version is still this.
DELETE FROM rewheel_locks WHERE name = ? AND version = ?
