-- 0017: results of jobs, and the record of the attempt that succeeded.
ALTER TABLE rewheel.finished ADD COLUMN ran_by uuid;            -- holder of that attempt; NULL: no attempt succeeded, or no record
ALTER TABLE rewheel.finished ADD COLUMN started_ms bigint;
ALTER TABLE rewheel.finished ADD COLUMN duration_ms bigint;
ALTER TABLE rewheel.finished ADD COLUMN success_code text;

CREATE TABLE rewheel.results (
    job          uuid   PRIMARY KEY,
    expires_ms   bigint NOT NULL,      -- when the result is deleted; later, when the row is
    content_type text,                 -- NULL if there is no body
    dropped      text,                 -- why the result was not kept; NULL together with the body: it was deleted with its job
    body         bytea
);
CREATE INDEX results_expires ON rewheel.results (expires_ms);
