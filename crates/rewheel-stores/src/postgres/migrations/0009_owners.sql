-- 0009: the token that created a worker, and the number of dropped attempt records.
ALTER TABLE rewheel.holders ADD COLUMN owner text COLLATE "C";              -- for workers only
ALTER TABLE rewheel.attempts ADD COLUMN dropped bigint NOT NULL DEFAULT 0;  -- dropped records between the previous one and this one
