-- 0012: jobs whose rows could not be read, and why. Each is paused until an operator resumes or cancels it.
CREATE TABLE unreadable (
    job    BLOB    PRIMARY KEY,
    at_ms  INTEGER NOT NULL,
    reason TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
