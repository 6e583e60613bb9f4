-- 0005: the retry budget of each kind.
CREATE TABLE budgets (
    kind       TEXT    PRIMARY KEY,
    balance    INTEGER NOT NULL,       -- millionths of a retry
    counted_ms INTEGER NOT NULL        -- the floor has been added up to this time
) STRICT, WITHOUT ROWID;
