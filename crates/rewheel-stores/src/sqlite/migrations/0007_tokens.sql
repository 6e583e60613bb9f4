-- 0007: access tokens.
CREATE TABLE tokens (
    id         TEXT    PRIMARY KEY,    -- the public id of a token, shown instead of its secret
    name       TEXT    NOT NULL,
    roles      TEXT    NOT NULL,
    tenant     TEXT    NOT NULL,       -- '' means all tenants
    hash       BLOB    NOT NULL,       -- SHA-256 of the token
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    revoked_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked_ms IS NULL;
