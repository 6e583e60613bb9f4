-- 0011: when a job was last started under a fleet-wide limit.
CREATE TABLE limits (
    scope   TEXT    NOT NULL,      -- `kind` or `tenant`
    name    TEXT    NOT NULL,
    last_ms INTEGER NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;
