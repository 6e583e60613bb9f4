-- 0008: idempotency keys and the responses to them.
CREATE TABLE idempotency (
    key             BLOB    PRIMARY KEY,    -- a hash of caller and key
    fingerprint     BLOB    NOT NULL,       -- a hash of the request
    run             BLOB    NOT NULL,       -- the current or latest run
    leased_until_ms INTEGER,                -- NULL once there is a response
    ends_ms         INTEGER NOT NULL,       -- when the key expires
    answer          BLOB    NOT NULL
) STRICT;
CREATE INDEX idempotency_ends ON idempotency (ends_ms);
