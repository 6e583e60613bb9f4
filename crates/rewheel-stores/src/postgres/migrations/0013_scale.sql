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

-- Tells readers which kinds changed since their last read: each kind has the number of the transaction that last changed it. A reader
-- asks for changes since the oldest transaction that was open at its last read, so that it misses no change that commits late.
CREATE FUNCTION rewheel.change_number() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT pg_catalog.pg_current_xact_id()::text::bigint $$;
ALTER TABLE rewheel.kinds ADD COLUMN changed bigint NOT NULL DEFAULT 1;
CREATE INDEX kinds_changed ON rewheel.kinds (changed);
CREATE TABLE rewheel.kind_changes (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),   -- a single row
    deleted bigint  NOT NULL                                -- the latest transaction that deleted a kind
);
INSERT INTO rewheel.kind_changes (deleted) VALUES (0);
