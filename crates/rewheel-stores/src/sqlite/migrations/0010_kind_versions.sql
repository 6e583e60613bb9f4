-- 0010: how often people changed a kind, for whoever wants to change it only as they saw it.
ALTER TABLE kinds ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
