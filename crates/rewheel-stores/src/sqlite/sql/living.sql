-- living: every holder that is alive.
SELECT id FROM holders WHERE died_ms IS NULL;
