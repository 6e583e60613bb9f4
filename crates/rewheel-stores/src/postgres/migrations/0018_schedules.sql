-- 0018: the instant of the schedule that submitted a job.
ALTER TABLE rewheel.jobs ADD COLUMN instant_ms bigint;
ALTER TABLE rewheel.dead ADD COLUMN instant_ms bigint;
ALTER TABLE rewheel.finished ADD COLUMN instant_ms bigint;
