-- living: every engine that is alive.
SELECT id FROM holders WHERE died_ms IS NULL AND role = 'engine';
