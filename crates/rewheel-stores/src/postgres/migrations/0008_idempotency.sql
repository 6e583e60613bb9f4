-- 0008: what was asked for under an idempotency key, and answered.
CREATE TABLE rewheel.idempotency (
    key             bytea  PRIMARY KEY,         -- a hash of caller and key
    fingerprint     bytea  NOT NULL,            -- a hash of what was asked for
    run             uuid   NOT NULL,            -- who is at work on it, or was last
    leased_until_ms bigint,                     -- null once there is an answer
    ends_ms         bigint NOT NULL,            -- when it may be forgotten
    answer          bytea  NOT NULL
);
CREATE INDEX idempotency_ends ON rewheel.idempotency (ends_ms);
