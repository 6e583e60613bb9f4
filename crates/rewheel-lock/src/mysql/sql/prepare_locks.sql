-- prepare_locks: creates the table of locks. Its text is bytes, so that names are compared exactly.
CREATE TABLE IF NOT EXISTS rewheel_locks (
    name     VARBINARY(255) NOT NULL PRIMARY KEY,
    version  BIGINT         NOT NULL,
    token    BIGINT         NOT NULL,
    holder   VARBINARY(32)  NOT NULL,
    owner    VARBINARY(255) NOT NULL,
    until_ms BIGINT         NOT NULL,
    lease_ms BIGINT         NOT NULL,
    line     MEDIUMBLOB     NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
