-- 0010: the version of a kind, for conditional changes.
ALTER TABLE kinds ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
