-- 0008: idempotency keys and the responses to them.
CREATE TABLE rewheel.idempotency (
    key             bytea  PRIMARY KEY,         -- a hash of caller and key
    fingerprint     bytea  NOT NULL,            -- a hash of the request
    run             uuid   NOT NULL,            -- the current or latest run
    leased_until_ms bigint,                     -- NULL once there is a response
    ends_ms         bigint NOT NULL,            -- when the key expires
    answer          bytea  NOT NULL
);
CREATE INDEX idempotency_ends ON rewheel.idempotency (ends_ms);
