-- 0007: who may do what over the wire.
CREATE TABLE rewheel.tokens (
    id         text   COLLATE "C" PRIMARY KEY,      -- what a token is known by where its secret must not be seen
    name       text   COLLATE "C" NOT NULL,
    roles      text   NOT NULL,
    tenant     text   COLLATE "C" NOT NULL,         -- '' for all of them
    hash       bytea  NOT NULL,                     -- SHA-256 of the token
    created_ms bigint NOT NULL,
    expires_ms bigint,
    revoked_ms bigint
);
CREATE UNIQUE INDEX tokens_name ON rewheel.tokens (name) WHERE revoked_ms IS NULL;
