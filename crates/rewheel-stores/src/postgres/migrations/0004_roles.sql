-- 0004: engines, and workers elsewhere.
ALTER TABLE rewheel.holders ADD COLUMN role TEXT NOT NULL DEFAULT 'engine';
