-- living: every engine that is alive, and the holders ?1 and ?2 if they are.
SELECT id FROM holders WHERE died_ms IS NULL AND (role = 'engine' OR id IN (?1, ?2));
