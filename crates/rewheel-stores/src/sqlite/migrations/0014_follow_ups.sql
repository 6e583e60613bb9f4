-- 0014: jobs that the settle of another job submitted, and the format of each holder: what its release can handle.
ALTER TABLE holders ADD COLUMN format INTEGER NOT NULL DEFAULT 0;   -- 0: a release without formats
ALTER TABLE jobs ADD COLUMN parent BLOB;
ALTER TABLE dead ADD COLUMN parent BLOB;
ALTER TABLE finished ADD COLUMN parent BLOB;
CREATE INDEX jobs_parent ON jobs (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX dead_parent ON dead (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX finished_parent ON finished (parent, id) WHERE parent IS NOT NULL;
