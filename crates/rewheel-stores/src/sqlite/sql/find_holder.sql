-- find_holder: reads the number of a holder that is alive.
SELECT seq FROM holders WHERE id = ?1 AND died_ms IS NULL;
