-- 0005: the retries that each kind has earned.
CREATE TABLE budgets (
    kind       TEXT    PRIMARY KEY,
    balance    INTEGER NOT NULL,       -- millionths of a retry
    counted_ms INTEGER NOT NULL        -- up to when the floor is counted in
) STRICT, WITHOUT ROWID;
