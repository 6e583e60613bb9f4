-- 0004: roles of holders: engines and remote workers.
ALTER TABLE holders ADD COLUMN role TEXT NOT NULL DEFAULT 'engine';
