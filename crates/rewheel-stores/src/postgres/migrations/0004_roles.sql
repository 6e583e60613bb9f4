-- 0004: roles of holders: engines and remote workers.
ALTER TABLE rewheel.holders ADD COLUMN role TEXT NOT NULL DEFAULT 'engine';
