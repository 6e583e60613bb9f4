-- 0017: results of jobs, and the record of the attempt that succeeded.
ALTER TABLE finished ADD COLUMN ran_by BLOB;            -- id of the holder of that attempt; NULL: no attempt succeeded, or no record
ALTER TABLE finished ADD COLUMN started_ms INTEGER;
ALTER TABLE finished ADD COLUMN duration_ms INTEGER;
ALTER TABLE finished ADD COLUMN success_code TEXT;

CREATE TABLE results (
    job          BLOB    PRIMARY KEY,
    expires_ms   INTEGER NOT NULL,     -- when the result is deleted; later, when the row is
    content_type TEXT,                 -- NULL if there is no body
    dropped      TEXT,                 -- why the result was not kept; NULL together with the body: it was deleted with its job
    body         BLOB
) STRICT;
CREATE INDEX results_expires ON results (expires_ms);
