-- 0007: access tokens.
CREATE TABLE rewheel.tokens (
    id         text   COLLATE "C" PRIMARY KEY,      -- the public id of a token, shown instead of its secret
    name       text   COLLATE "C" NOT NULL,
    roles      text   NOT NULL,
    tenant     text   COLLATE "C" NOT NULL,         -- '' means all tenants
    hash       bytea  NOT NULL,                     -- SHA-256 of the token
    created_ms bigint NOT NULL,
    expires_ms bigint,
    revoked_ms bigint
);
CREATE UNIQUE INDEX tokens_name ON rewheel.tokens (name) WHERE revoked_ms IS NULL;
