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
