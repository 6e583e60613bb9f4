-- raise_floor: remembers the largest token of the locks that are free since ?1.
UPDATE rewheel_lock_floor
   SET token = max(token, coalesce((SELECT max(token) FROM rewheel_locks WHERE until_ms < ?1), 0));
