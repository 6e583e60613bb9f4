-- living: reads the ids of all live engines, and of two holders if they are alive.
SELECT id FROM rewheel_holders WHERE died_ms IS NULL AND (role = 'engine' OR id IN (?, ?))
