-- 0005: the retry budget of each kind. Not in the table of kinds: claims read that one, and every heartbeat writes this one.
CREATE TABLE rewheel.budgets (
    kind       text   COLLATE "C" PRIMARY KEY,
    balance    bigint NOT NULL,                -- millionths of a retry
    counted_ms bigint NOT NULL                 -- the floor has been added up to this time
) WITH (fillfactor = 50);
