-- delete_attempts: deletes the attempt records of a job that ends without retention.
DELETE FROM attempts WHERE job = ?1;
