-- prepare: creates the tables. The name begins with the program's, because the file may have tables of others.
CREATE TABLE IF NOT EXISTS rewheel_locks (
    name TEXT NOT NULL PRIMARY KEY,
    token INTEGER NOT NULL,
    holder TEXT NOT NULL,
    owner TEXT NOT NULL,
    until_ms INTEGER NOT NULL,
    lease_ms INTEGER NOT NULL,
    line TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The largest token of all rows that were deleted.
CREATE TABLE IF NOT EXISTS rewheel_lock_floor (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    token INTEGER NOT NULL
) STRICT;
INSERT OR IGNORE INTO rewheel_lock_floor (one, token) VALUES (1, 0);
