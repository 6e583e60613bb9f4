-- 0018: the instant of the schedule that submitted a job.
ALTER TABLE jobs ADD COLUMN instant_ms INTEGER;
ALTER TABLE dead ADD COLUMN instant_ms INTEGER;
ALTER TABLE finished ADD COLUMN instant_ms INTEGER;
