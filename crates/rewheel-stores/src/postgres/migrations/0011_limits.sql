-- 0011: limits over the fleet: a row to lock for each, and when a job was last started under it. Rewritten at every start: half of
-- each page is left free for that.
CREATE TABLE rewheel.limits (
    scope   text   COLLATE "C" NOT NULL,      -- `kind` or `tenant`
    name    text   COLLATE "C" NOT NULL,
    last_ms bigint NOT NULL,
    PRIMARY KEY (scope, name)
) WITH (fillfactor = 50);
