-- 0007: who may do what over the wire.
CREATE TABLE tokens (
    id         TEXT    PRIMARY KEY,    -- what a token is known by where its secret must not be seen
    name       TEXT    NOT NULL,
    roles      TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,       -- '' for all of them
    hash       BLOB    NOT NULL,       -- SHA-256 of the token
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    revoked_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked_ms IS NULL;
