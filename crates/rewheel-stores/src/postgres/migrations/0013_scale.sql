-- 0013: job counts that one node takes for the whole fleet, so that a request never counts a large table.
CREATE TABLE rewheel.samples (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),   -- a single row
    begun_ms bigint,
    counting boolean NOT NULL DEFAULT false,
    cost_ms  bigint  NOT NULL DEFAULT 0,
    taken_ms bigint,
    tallies  text
);
INSERT INTO rewheel.samples DEFAULT VALUES;
