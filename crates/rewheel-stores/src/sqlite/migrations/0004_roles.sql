-- 0004: engines, and workers elsewhere.
ALTER TABLE holders ADD COLUMN role TEXT NOT NULL DEFAULT 'engine';
