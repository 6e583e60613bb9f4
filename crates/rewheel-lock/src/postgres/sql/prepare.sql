-- prepare: creates the tables. The caller has an advisory lock: `IF NOT EXISTS` alone fails if two processes start at once.
CREATE SCHEMA IF NOT EXISTS rewheel;

CREATE TABLE IF NOT EXISTS rewheel.locks (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    token bigint NOT NULL,
    holder text NOT NULL,
    owner text NOT NULL,
    until_ms bigint NOT NULL,
    lease_ms bigint NOT NULL,
    line text NOT NULL
) WITH (fillfactor = 50); -- a renewal stays on its page, so that it writes no index

-- The largest token of all rows that were deleted.
CREATE TABLE IF NOT EXISTS rewheel.lock_floor (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    token bigint NOT NULL
);
INSERT INTO rewheel.lock_floor (token) VALUES (0) ON CONFLICT DO NOTHING;
