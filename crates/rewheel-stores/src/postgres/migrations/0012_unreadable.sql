-- 0012: jobs whose rows could not be read, and why. Each is paused, on the shelf `unreadable`, until an operator resumes or cancels it.
CREATE TABLE rewheel.unreadable (
    job    uuid   PRIMARY KEY,
    at_ms  bigint NOT NULL,
    reason text   NOT NULL
);
