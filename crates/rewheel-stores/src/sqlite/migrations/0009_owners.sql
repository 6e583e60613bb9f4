-- 0009: who created a worker, and how many records of attempts were dropped.
ALTER TABLE holders ADD COLUMN owner TEXT;                          -- of workers only
ALTER TABLE attempts ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0; -- records between the previous one and this one
