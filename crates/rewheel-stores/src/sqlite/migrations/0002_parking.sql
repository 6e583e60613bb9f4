-- 0002: who suspects a kind, and whether a person decided.
ALTER TABLE kinds ADD COLUMN suspects TEXT NOT NULL DEFAULT '';      -- ids with commas between
ALTER TABLE kinds ADD COLUMN forced INTEGER NOT NULL DEFAULT 0;
