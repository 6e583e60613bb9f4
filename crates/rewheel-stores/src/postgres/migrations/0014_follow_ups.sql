-- 0014: jobs that the settle of another job submitted, and the format of each holder: what its release can handle.
ALTER TABLE rewheel.holders ADD COLUMN format integer NOT NULL DEFAULT 0;   -- 0: a release without formats
ALTER TABLE rewheel.jobs ADD COLUMN parent uuid;
ALTER TABLE rewheel.dead ADD COLUMN parent uuid;
ALTER TABLE rewheel.finished ADD COLUMN parent uuid;
CREATE INDEX jobs_parent ON rewheel.jobs (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX dead_parent ON rewheel.dead (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX finished_parent ON rewheel.finished (parent, id) WHERE parent IS NOT NULL;
