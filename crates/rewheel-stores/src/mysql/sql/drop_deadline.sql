-- drop_deadline: a job has no longer this deadline.
DELETE FROM rewheel_deadlines WHERE deadline_ms = ? AND job = ?;
