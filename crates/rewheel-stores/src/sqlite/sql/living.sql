-- living: reads every engine that is alive, and holders ?1 and ?2 if they are alive.
SELECT id FROM holders WHERE died_ms IS NULL AND (role = 'engine' OR id IN (?1, ?2));
