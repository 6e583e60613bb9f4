-- 0010: how often people changed a kind, for whoever wants to change it only as they saw it.
ALTER TABLE rewheel.kinds ADD COLUMN version bigint NOT NULL DEFAULT 1;
