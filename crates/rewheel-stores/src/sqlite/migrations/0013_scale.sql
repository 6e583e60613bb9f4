-- 0013: job counts that one node takes for all, so that a request never counts a large table.
CREATE TABLE samples (
    one      INTEGER PRIMARY KEY CHECK (one = 1),   -- a single row
    begun_ms INTEGER,
    counting INTEGER NOT NULL DEFAULT 0,
    cost_ms  INTEGER NOT NULL DEFAULT 0,
    taken_ms INTEGER,
    tallies  TEXT
) STRICT;
INSERT INTO samples (one) VALUES (1);

-- Tells readers which kinds changed since their last read: each change has a number.
ALTER TABLE kinds ADD COLUMN changed INTEGER NOT NULL DEFAULT 1;
CREATE INDEX kinds_changed ON kinds (changed);
CREATE TABLE kind_changes (
    one     INTEGER PRIMARY KEY CHECK (one = 1),   -- a single row
    latest  INTEGER NOT NULL,
    deleted INTEGER NOT NULL                       -- the latest change that deleted a kind
) STRICT;
INSERT INTO kind_changes VALUES (1, 1, 0);
