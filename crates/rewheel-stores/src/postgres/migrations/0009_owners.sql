-- 0009: who created a worker, and how many records of attempts were dropped.
ALTER TABLE rewheel.holders ADD COLUMN owner text COLLATE "C";              -- of workers only
ALTER TABLE rewheel.attempts ADD COLUMN dropped bigint NOT NULL DEFAULT 0;  -- records between the previous one and this one
