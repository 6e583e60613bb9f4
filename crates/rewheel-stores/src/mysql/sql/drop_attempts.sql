-- drop_attempts: deletes the attempt records of a job that ends without retention.
DELETE FROM rewheel_attempts WHERE job = ?;
