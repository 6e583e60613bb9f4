-- 0005: the retries that each kind has earned. Apart from the kinds: claims read those, and every heartbeat writes these.
CREATE TABLE rewheel.budgets (
    kind       text   COLLATE "C" PRIMARY KEY,
    balance    bigint NOT NULL,                -- millionths of a retry
    counted_ms bigint NOT NULL                 -- up to when the floor is counted in
) WITH (fillfactor = 50);
