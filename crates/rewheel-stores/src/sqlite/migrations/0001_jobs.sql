-- 0001: the tables of the SQLite store.
-- Times are milliseconds since 1970 by the store's clock; durations are milliseconds: `_ms`.

-- A lane is (kind, tenant, priority). A small number for it keeps rows and indexes short.
CREATE TABLE lanes (
    lane     INTEGER PRIMARY KEY,
    kind     TEXT    NOT NULL,
    tenant   TEXT    NOT NULL,      -- '' means no tenant: NULLs would not be unique
    priority INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX lanes_name ON lanes (kind, tenant, priority);

-- The hot table: scheduled, leased and paused jobs. It and its indexes stay small.
CREATE TABLE jobs (
    seq                INTEGER PRIMARY KEY,   -- breaks ties between equal due times: first in, first out
    id                 BLOB    NOT NULL,
    lane               INTEGER NOT NULL,
    state              TEXT    NOT NULL,
    due_ms             INTEGER NOT NULL,
    because            TEXT    NOT NULL,
    fence              INTEGER NOT NULL,
    version            INTEGER NOT NULL,
    attempt            INTEGER NOT NULL,
    attempts_before    INTEGER NOT NULL,
    takeovers          INTEGER NOT NULL,
    takeovers_counted  INTEGER NOT NULL,
    holder             INTEGER,               -- holders.seq
    leased_ms          INTEGER,
    overdue_ms         INTEGER,
    wanted             TEXT,
    started_fence      INTEGER,
    settled_by         INTEGER,               -- holders.seq of the latest settle, to recognize a repeated one
    settled_fence      INTEGER,
    settled_kept       INTEGER,               -- 1: the settling holder kept the job
    created_ms         INTEGER NOT NULL,
    deadline_ms        INTEGER,
    attempts_max       INTEGER,
    attempt_timeout_ms INTEGER,
    backoff            TEXT,
    key                TEXT,
    shard_key          TEXT,
    traceparent        TEXT,
    failure_category   TEXT,
    failure_code       TEXT,
    failure_message    TEXT,
    payload            BLOB    NOT NULL       -- last: a read of the other columns stops before it
) STRICT;
CREATE UNIQUE INDEX jobs_id ON jobs (id);
CREATE INDEX jobs_due ON jobs (lane, due_ms) WHERE state = 'scheduled';   -- plus seq, which SQLite appends to every index
CREATE INDEX jobs_held ON jobs (holder, overdue_ms) WHERE state = 'leased';
CREATE INDEX jobs_paused ON jobs (lane) WHERE state = 'paused';           -- for counting
CREATE INDEX jobs_wanted ON jobs (holder) WHERE wanted IS NOT NULL;
CREATE INDEX jobs_deadline ON jobs (deadline_ms) WHERE deadline_ms IS NOT NULL;

-- Dead letters wait for an operator; nothing prunes them.
CREATE TABLE dead (
    seq                INTEGER PRIMARY KEY,
    id                 BLOB    NOT NULL,
    lane               INTEGER NOT NULL,
    state              TEXT    NOT NULL,
    due_ms             INTEGER NOT NULL,
    because            TEXT    NOT NULL,
    fence              INTEGER NOT NULL,
    version            INTEGER NOT NULL,
    attempt            INTEGER NOT NULL,
    attempts_before    INTEGER NOT NULL,
    takeovers          INTEGER NOT NULL,
    takeovers_counted  INTEGER NOT NULL,
    settled_by         INTEGER,
    settled_fence      INTEGER,
    created_ms         INTEGER NOT NULL,
    deadline_ms        INTEGER,
    attempts_max       INTEGER,
    attempt_timeout_ms INTEGER,
    backoff            TEXT,
    key                TEXT,
    shard_key          TEXT,
    traceparent        TEXT,
    failure_category   TEXT,
    failure_code       TEXT,
    failure_message    TEXT,
    ended_ms           INTEGER NOT NULL,
    announced_ms       INTEGER,               -- NULL until announced
    payload            BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX dead_id ON dead (id);
CREATE INDEX dead_lane ON dead (lane);
CREATE INDEX dead_unannounced ON dead (ended_ms) WHERE announced_ms IS NULL;

-- Succeeded, failed and cancelled jobs: kept until their retention ends.
CREATE TABLE finished (
    seq                INTEGER PRIMARY KEY,
    id                 BLOB    NOT NULL,
    lane               INTEGER NOT NULL,
    state              TEXT    NOT NULL,
    due_ms             INTEGER NOT NULL,
    because            TEXT    NOT NULL,
    fence              INTEGER NOT NULL,
    version            INTEGER NOT NULL,
    attempt            INTEGER NOT NULL,
    attempts_before    INTEGER NOT NULL,
    takeovers          INTEGER NOT NULL,
    takeovers_counted  INTEGER NOT NULL,
    settled_by         INTEGER,
    settled_fence      INTEGER,
    created_ms         INTEGER NOT NULL,
    deadline_ms        INTEGER,
    attempts_max       INTEGER,
    attempt_timeout_ms INTEGER,
    backoff            TEXT,
    key                TEXT,
    shard_key          TEXT,
    traceparent        TEXT,
    failure_category   TEXT,
    failure_code       TEXT,
    failure_message    TEXT,
    ended_ms           INTEGER NOT NULL,
    expires_ms         INTEGER NOT NULL,
    payload            BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX finished_id ON finished (id);
CREATE INDEX finished_expires ON finished (expires_ms);

-- One row for each failed attempt, in the order in which they were settled.
CREATE TABLE attempts (
    seq         INTEGER PRIMARY KEY,
    job         BLOB    NOT NULL,
    attempt     INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    holder      BLOB    NOT NULL,
    started_ms  INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    category    TEXT    NOT NULL,
    code        TEXT,
    message     TEXT    NOT NULL,
    decision    TEXT    NOT NULL,
    delay_ms    INTEGER
) STRICT;
CREATE INDEX attempts_job ON attempts (job);

-- A key outlives its job and stores its final state.
CREATE TABLE keys (
    kind         TEXT NOT NULL,
    tenant       TEXT NOT NULL,               -- '' means no tenant
    key          TEXT NOT NULL,
    job          BLOB NOT NULL,
    payload_hash BLOB NOT NULL,
    state        TEXT,                        -- NULL until the job has ended for good
    expires_ms   INTEGER,
    PRIMARY KEY (kind, tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_expires ON keys (expires_ms) WHERE expires_ms IS NOT NULL;

CREATE TABLE holders (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,   -- never reused: a holder that died stays dead
    id           BLOB    NOT NULL,
    name         TEXT    NOT NULL,
    lease_ttl_ms INTEGER NOT NULL,
    renewals     INTEGER NOT NULL,
    joined_ms    INTEGER NOT NULL,
    renewed_ms   INTEGER NOT NULL,
    died_ms      INTEGER
) STRICT;
CREATE UNIQUE INDEX holders_id ON holders (id);

CREATE TABLE kinds (
    name          TEXT    NOT NULL PRIMARY KEY,
    settings      TEXT    NOT NULL,
    takeovers_max INTEGER NOT NULL,
    paused        INTEGER NOT NULL,
    parked_ms     INTEGER,
    parked_reason TEXT,
    prober        BLOB,
    probe_job     BLOB,                       -- the job that the prober claimed
    generation    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The ledger: each flush appends how many jobs it added and removed.
CREATE TABLE ledger (
    seq       INTEGER PRIMARY KEY,
    at_ms     INTEGER NOT NULL,
    submitted INTEGER NOT NULL,
    pruned    INTEGER NOT NULL
) STRICT;

CREATE TABLE audit (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms  INTEGER NOT NULL,
    who    TEXT    NOT NULL,
    what   TEXT    NOT NULL,
    job    BLOB,
    kind   TEXT,
    before TEXT    NOT NULL,
    after  TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_job ON audit (job, seq) WHERE job IS NOT NULL;
