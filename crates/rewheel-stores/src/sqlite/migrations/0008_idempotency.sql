-- 0008: what was asked for under an idempotency key, and answered.
CREATE TABLE idempotency (
    key             BLOB    PRIMARY KEY,    -- a hash of caller and key
    fingerprint     BLOB    NOT NULL,       -- a hash of what was asked for
    run             BLOB    NOT NULL,       -- who is at work on it, or was last
    leased_until_ms INTEGER,                -- null once there is an answer
    ends_ms         INTEGER NOT NULL,       -- when it may be forgotten
    answer          BLOB    NOT NULL
) STRICT;
CREATE INDEX idempotency_ends ON idempotency (ends_ms);
