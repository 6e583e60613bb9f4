-- 0002: the holders that suspect a kind, and whether an operator parked or resumed it.
ALTER TABLE kinds ADD COLUMN suspects TEXT NOT NULL DEFAULT '';      -- ids of holders, separated by commas
ALTER TABLE kinds ADD COLUMN forced INTEGER NOT NULL DEFAULT 0;
