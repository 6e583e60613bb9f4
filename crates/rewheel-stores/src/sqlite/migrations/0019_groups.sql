-- 0019: groups, whose jobs run one at a time. A job that waits for others of its group has the state `blocked`, which readers see as
-- `scheduled`: no claim finds it.
ALTER TABLE jobs ADD COLUMN group_key TEXT;
ALTER TABLE dead ADD COLUMN group_key TEXT;
ALTER TABLE finished ADD COLUMN group_key TEXT;
ALTER TABLE jobs ADD COLUMN turn INTEGER;          -- the number of its latest release
ALTER TABLE dead ADD COLUMN turn INTEGER;
ALTER TABLE finished ADD COLUMN turn INTEGER;
CREATE INDEX jobs_blocked ON jobs (lane) WHERE state = 'blocked';                              -- for counting
CREATE INDEX finished_group ON finished (group_key, id) WHERE group_key IS NOT NULL;
ALTER TABLE kinds ADD COLUMN blocks_on_dead INTEGER NOT NULL DEFAULT 0;                        -- 1: a dead letter holds up its group

-- The unfinished jobs of groups, in the order in which they run.
CREATE TABLE group_members (
    place     INTEGER PRIMARY KEY AUTOINCREMENT,   -- never reused: a redriven job keeps its place
    job       BLOB    NOT NULL UNIQUE,
    group_key TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    tenant    TEXT    NOT NULL,                    -- '' means no tenant
    dead      INTEGER NOT NULL DEFAULT 0           -- 1: the job is a dead letter
) STRICT;
CREATE INDEX group_members_line ON group_members (group_key, kind, tenant, place);

-- The job of each line that may run or holds up the others: at most one.
CREATE TABLE group_heads (
    turn      INTEGER PRIMARY KEY AUTOINCREMENT,   -- grows with every release
    job       BLOB    NOT NULL UNIQUE,
    group_key TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    tenant    TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX group_heads_line ON group_heads (group_key, kind, tenant);
