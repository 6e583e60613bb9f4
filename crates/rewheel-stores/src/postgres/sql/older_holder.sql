-- older_holder: reads the name of a living holder whose release does not know format $1.
SELECT name FROM rewheel.holders WHERE died_ms IS NULL AND format < $1 ORDER BY seq LIMIT 1;
