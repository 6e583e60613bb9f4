-- 0010: the version of a kind, for conditional changes.
ALTER TABLE rewheel.kinds ADD COLUMN version bigint NOT NULL DEFAULT 1;
