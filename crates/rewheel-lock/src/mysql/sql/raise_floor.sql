-- raise_floor: remembers the largest token of locks that are about to be deleted.
UPDATE rewheel_lock_floor SET token = ? WHERE token < ?
