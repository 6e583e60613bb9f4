-- drop_attempts: deletes the attempt records of jobs that end without retention.
DELETE FROM rewheel_attempts WHERE job IN ({list});
