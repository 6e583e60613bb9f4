-- 0011: fleet-wide limits: a row to lock for each, and when a job was last started under it. Updated at every start: half of each page
-- stays free for that.
CREATE TABLE rewheel.limits (
    scope   text   COLLATE "C" NOT NULL,      -- `kind` or `tenant`
    name    text   COLLATE "C" NOT NULL,
    last_ms bigint NOT NULL,
    PRIMARY KEY (scope, name)
) WITH (fillfactor = 50);
