-- delete_attempts: the history of a job of which nothing is kept.
DELETE FROM attempts WHERE job = ?1;
