-- 0009: the token that created a worker, and the number of dropped attempt records.
ALTER TABLE holders ADD COLUMN owner TEXT;                          -- for workers only
ALTER TABLE attempts ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0; -- dropped records between the previous one and this one
