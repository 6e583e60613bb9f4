-- older_holder: reads the name of a living holder whose release does not know a format.
SELECT name FROM rewheel_holders WHERE died_ms IS NULL AND format < ? ORDER BY seq LIMIT 1;
