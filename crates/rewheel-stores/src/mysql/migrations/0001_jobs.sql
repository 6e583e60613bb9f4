-- 0001: the tables of the MySQL store. Each statement is one step, which may be repeated: there are no transactions around DDL.
-- Times are milliseconds since 1970 by the server's clock; durations are milliseconds: `_ms`. Names that users choose are VARBINARY: the
-- binary collation of utf8mb4 ignores spaces at the end. Columns that every claim changes have a fixed size and are never NULL, so that a
-- row does not grow.

-- A lane is (kind, tenant, priority, shard). A small number for it keeps rows short. The lane of a debounced job has 256 added to its shard.
CREATE TABLE IF NOT EXISTS rewheel_lanes (
    lane     INT              NOT NULL AUTO_INCREMENT PRIMARY KEY,
    kind     VARCHAR(64)      NOT NULL,
    tenant   VARBINARY(128)   NOT NULL,      -- '' means no tenant: NULLs would not be unique
    priority TINYINT UNSIGNED NOT NULL,
    shard    SMALLINT UNSIGNED NOT NULL,
    UNIQUE KEY name (kind, tenant, priority, shard),
    KEY tenant (tenant)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

-- The hot table: scheduled, leased, paused and blocked jobs, in the order in which they are claimed. A claim changes rows where they are.
-- `lane` is negative for rows that no claim should read: paused and blocked ones, and those that are leased for long.
-- `place` is the due time (at most 2^43 - 1) shifted left by 20 bits, with a number that breaks ties: first in, first out.
CREATE TABLE IF NOT EXISTS rewheel_jobs (
    lane               INT              NOT NULL,
    place              BIGINT           NOT NULL,
    id                 BINARY(16)       NOT NULL,
    state              TINYINT UNSIGNED NOT NULL,              -- 0 scheduled, 1 leased, 2 paused, 3 blocked: waits for others of its group
    due_ms             BIGINT           NOT NULL,
    because            VARCHAR(32)      NOT NULL,
    fence              BIGINT           NOT NULL,
    version            BIGINT           NOT NULL,
    attempt            INT UNSIGNED     NOT NULL,
    attempts_before    INT UNSIGNED     NOT NULL,
    takeovers          INT UNSIGNED     NOT NULL,
    takeovers_counted  INT UNSIGNED     NOT NULL,
    holder             BIGINT           NOT NULL DEFAULT 0,    -- rewheel_holders.seq; 0: none
    claim              BIGINT           NOT NULL DEFAULT 0,    -- rewheel_claims.seq; 0: none
    leased_ms          BIGINT           NOT NULL DEFAULT 0,
    overdue_ms         BIGINT           NOT NULL DEFAULT 0,
    wanted             TINYINT UNSIGNED NOT NULL DEFAULT 0,    -- 1 pause, 2 cancel
    started_fence      BIGINT           NOT NULL DEFAULT 0,    -- 0: no start was recorded
    settled_by         BIGINT           NOT NULL DEFAULT 0,    -- holder of the latest settle, to recognize a repeated one; negative: it gave the job back
    settled_fence      BIGINT           NOT NULL DEFAULT 0,
    settled_kept       TINYINT UNSIGNED NOT NULL DEFAULT 0,    -- 1: the settling holder kept the job
    created_ms         BIGINT           NOT NULL,
    deadline_ms        BIGINT,                                 -- also in rewheel_deadlines
    attempts_max       INT UNSIGNED,
    attempt_timeout_ms BIGINT,
    backoff            VARBINARY(1024),
    `key`              VARBINARY(255),
    shard_key          VARBINARY(255),
    traceparent        VARBINARY(255),
    parent             BINARY(16),                             -- also in rewheel_children
    instant_ms         BIGINT,
    group_key          VARBINARY(255),                         -- also in rewheel_grouped
    turn               BIGINT,
    failure_category   VARCHAR(32),
    failure_code       VARBINARY(64),
    failure_message    BLOB,
    payload            LONGBLOB         NOT NULL,
    PRIMARY KEY (lane, place),
    UNIQUE KEY id (id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

-- One row for each claim and lane: which jobs it leased. Jobs that are still leased say so in their own rows; `jobs_left` counts them.
CREATE TABLE IF NOT EXISTS rewheel_claims (
    seq        BIGINT           NOT NULL AUTO_INCREMENT PRIMARY KEY,
    holder     BIGINT           NOT NULL,
    lane       INT              NOT NULL,
    leased_ms  BIGINT           NOT NULL,
    overdue_ms BIGINT           NOT NULL,                      -- no job of the claim is overdue earlier
    jobs_left  INT              NOT NULL,
    aside      TINYINT UNSIGNED NOT NULL DEFAULT 0,            -- 1: its jobs have left the range that claims read
    jobs       MEDIUMBLOB       NOT NULL,                      -- their ids, one after the other
    KEY holder (holder, overdue_ms),
    KEY lane (lane, jobs_left),
    KEY aside (aside, leased_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

-- Jobs of claims that a user's transaction ended, to be subtracted from `jobs_left`: it must not lock the row of a claim, because other
-- settles wait for it.
CREATE TABLE IF NOT EXISTS rewheel_claim_ends (
    seq   BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    claim BIGINT NOT NULL,
    jobs  BIGINT NOT NULL
) ENGINE = InnoDB;

-- Dead letters wait for an operator; nothing prunes them.
CREATE TABLE IF NOT EXISTS rewheel_dead (
    id                 BINARY(16)       NOT NULL PRIMARY KEY,
    lane               INT              NOT NULL,
    state              VARCHAR(16)      NOT NULL,
    due_ms             BIGINT           NOT NULL,
    because            VARCHAR(32)      NOT NULL,
    fence              BIGINT           NOT NULL,
    version            BIGINT           NOT NULL,
    attempt            INT UNSIGNED     NOT NULL,
    attempts_before    INT UNSIGNED     NOT NULL,
    takeovers          INT UNSIGNED     NOT NULL,
    takeovers_counted  INT UNSIGNED     NOT NULL,
    settled_by         BIGINT           NOT NULL DEFAULT 0,
    settled_fence      BIGINT           NOT NULL DEFAULT 0,
    created_ms         BIGINT           NOT NULL,
    deadline_ms        BIGINT,
    attempts_max       INT UNSIGNED,
    attempt_timeout_ms BIGINT,
    backoff            VARBINARY(1024),
    `key`              VARBINARY(255),
    shard_key          VARBINARY(255),
    traceparent        VARBINARY(255),
    parent             BINARY(16),
    instant_ms         BIGINT,
    group_key          VARBINARY(255),
    turn               BIGINT,
    failure_category   VARCHAR(32),
    failure_code       VARBINARY(64),
    failure_message    BLOB,
    ended_ms           BIGINT           NOT NULL,
    announced_ms       BIGINT           NOT NULL DEFAULT 0,    -- 0 until announced
    payload            LONGBLOB         NOT NULL,
    KEY lane (lane),
    KEY unannounced (announced_ms, ended_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

-- Succeeded, failed and cancelled jobs: kept until their retention ends.
CREATE TABLE IF NOT EXISTS rewheel_finished (
    id                 BINARY(16)       NOT NULL PRIMARY KEY,
    lane               INT              NOT NULL,
    state              VARCHAR(16)      NOT NULL,
    due_ms             BIGINT           NOT NULL,
    because            VARCHAR(32)      NOT NULL,
    fence              BIGINT           NOT NULL,
    version            BIGINT           NOT NULL,
    attempt            INT UNSIGNED     NOT NULL,
    attempts_before    INT UNSIGNED     NOT NULL,
    takeovers          INT UNSIGNED     NOT NULL,
    takeovers_counted  INT UNSIGNED     NOT NULL,
    settled_by         BIGINT           NOT NULL DEFAULT 0,
    settled_fence      BIGINT           NOT NULL DEFAULT 0,
    created_ms         BIGINT           NOT NULL,
    deadline_ms        BIGINT,
    attempts_max       INT UNSIGNED,
    attempt_timeout_ms BIGINT,
    backoff            VARBINARY(1024),
    `key`              VARBINARY(255),
    shard_key          VARBINARY(255),
    traceparent        VARBINARY(255),
    parent             BINARY(16),
    instant_ms         BIGINT,
    group_key          VARBINARY(255),
    turn               BIGINT,
    failure_category   VARCHAR(32),
    failure_code       VARBINARY(64),
    failure_message    BLOB,
    ended_ms           BIGINT           NOT NULL,
    expires_ms         BIGINT           NOT NULL,
    ran_by             BINARY(16),                             -- holder of the attempt that succeeded; NULL: none, or no record
    started_ms         BIGINT,
    duration_ms        BIGINT,
    success_code       VARBINARY(64),
    payload            LONGBLOB         NOT NULL,
    KEY expires (expires_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

-- The deadlines of live jobs. Few jobs have one: an index of rewheel_jobs would have an entry for each.
CREATE TABLE IF NOT EXISTS rewheel_deadlines (
    deadline_ms BIGINT     NOT NULL,
    job         BINARY(16) NOT NULL,
    PRIMARY KEY (deadline_ms, job)
) ENGINE = InnoDB;

-- Leased jobs for which a user requested a pause or a cancellation.
CREATE TABLE IF NOT EXISTS rewheel_wanted (
    holder BIGINT     NOT NULL,
    job    BINARY(16) NOT NULL,
    PRIMARY KEY (holder, job)
) ENGINE = InnoDB;

-- Jobs that the settle of another job submitted, in any table of jobs.
CREATE TABLE IF NOT EXISTS rewheel_children (
    parent BINARY(16) NOT NULL,
    job    BINARY(16) NOT NULL,
    PRIMARY KEY (parent, job)
) ENGINE = InnoDB;

-- Jobs with a group, in any table of jobs.
CREATE TABLE IF NOT EXISTS rewheel_grouped (
    group_key VARBINARY(255) NOT NULL,
    job       BINARY(16)     NOT NULL,
    PRIMARY KEY (group_key, job)
) ENGINE = InnoDB;

-- The unfinished jobs of groups, in the order in which they run.
CREATE TABLE IF NOT EXISTS rewheel_members (
    place     BIGINT           NOT NULL AUTO_INCREMENT PRIMARY KEY,   -- never reused: a redriven job keeps its place
    job       BINARY(16)       NOT NULL,
    group_key VARBINARY(255)   NOT NULL,
    kind      VARCHAR(64)      NOT NULL,
    tenant    VARBINARY(128)   NOT NULL,
    dead      TINYINT UNSIGNED NOT NULL DEFAULT 0,                    -- 1: the job is a dead letter
    UNIQUE KEY job (job),
    KEY line (dead, group_key, kind, tenant, place)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

-- The lines of groups, each with the job that may run or holds up the others. Who changes a line locks its row first.
CREATE TABLE IF NOT EXISTS rewheel_lines (
    group_key VARBINARY(255) NOT NULL,
    kind      VARCHAR(64)    NOT NULL,
    tenant    VARBINARY(128) NOT NULL,
    head      BINARY(16),                                             -- NULL: none
    turn      BIGINT         NOT NULL DEFAULT 0,                      -- of the latest release; grows, and is not less than its time
    idle_ms   BIGINT,                                                 -- since when it has no member; NULL: it may have some
    PRIMARY KEY (group_key, kind, tenant),
    UNIQUE KEY head (head),
    KEY idle (idle_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

-- One row for each failed attempt, in the order in which they were settled.
CREATE TABLE IF NOT EXISTS rewheel_attempts (
    seq         BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job         BINARY(16)     NOT NULL,
    attempt     INT UNSIGNED   NOT NULL,
    fence       BIGINT         NOT NULL,
    holder      BINARY(16)     NOT NULL,
    started_ms  BIGINT         NOT NULL,
    duration_ms BIGINT         NOT NULL,
    category    VARCHAR(32)    NOT NULL,
    code        VARBINARY(64),
    message     BLOB           NOT NULL,
    decision    VARCHAR(32)    NOT NULL,
    delay_ms    BIGINT,
    dropped     BIGINT         NOT NULL DEFAULT 0,                    -- dropped records between the previous one and this one
    KEY job (job, seq)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

-- A key outlives its job and stores its final state. `name` is a hash of kind, tenant and key: a short primary key that a batch can name.
CREATE TABLE IF NOT EXISTS rewheel_keys (
    name         BINARY(32)  NOT NULL PRIMARY KEY,
    job          BINARY(16)  NOT NULL,
    payload_hash BINARY(32)  NOT NULL,
    state        VARCHAR(16),                                         -- NULL until the job has ended for good
    expires_ms   BIGINT,
    KEY expires (expires_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS rewheel_holders (
    seq          BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,  -- never reused: a holder that died stays dead
    id           BINARY(16)     NOT NULL,
    name         VARBINARY(255) NOT NULL,
    lease_ttl_ms BIGINT         NOT NULL,
    joined_ms    BIGINT         NOT NULL,
    died_ms      BIGINT,
    role         VARCHAR(16)    NOT NULL,
    owner        VARBINARY(255),                                      -- the token that created a worker
    format       INT            NOT NULL,                             -- what its release can handle
    UNIQUE KEY id (id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

-- The heartbeats of holders. A table of its own: work share-locks the row of its holder, and a heartbeat must not wait for work. Only a
-- heartbeat, an expiry and a deregistration lock a row here.
CREATE TABLE IF NOT EXISTS rewheel_renewals (
    id         BINARY(16)       NOT NULL PRIMARY KEY,                 -- rewheel_holders.id
    renewals   BIGINT           NOT NULL,
    renewed_ms BIGINT           NOT NULL,
    dead       TINYINT UNSIGNED NOT NULL DEFAULT 0                    -- 1: the holder is dead, and never renews again
) ENGINE = InnoDB;

-- The largest format that a stored job has used: a holder with a smaller one is refused. A single row.
CREATE TABLE IF NOT EXISTS rewheel_format (
    one    TINYINT NOT NULL PRIMARY KEY,
    format INT     NOT NULL
) ENGINE = InnoDB;
INSERT IGNORE INTO rewheel_format (one, format) VALUES (1, 0);

CREATE TABLE IF NOT EXISTS rewheel_kinds (
    name            VARCHAR(64)      NOT NULL PRIMARY KEY,
    settings        MEDIUMBLOB       NOT NULL,
    takeovers_max   INT UNSIGNED     NOT NULL,
    blocks_on_dead  TINYINT UNSIGNED NOT NULL,                        -- 1: a dead letter holds up its group
    paused          TINYINT UNSIGNED NOT NULL,
    parked_ms       BIGINT,
    parked_until_ms BIGINT,
    parked_reason   BLOB,
    prober          BINARY(16),
    probe_job       BINARY(16),                                       -- the job that the prober claimed
    generation      BIGINT           NOT NULL,
    suspects        MEDIUMBLOB       NOT NULL,                        -- ids of holders, separated by commas
    forced          TINYINT UNSIGNED NOT NULL,
    version         BIGINT           NOT NULL,
    changed         BIGINT           NOT NULL,                        -- the number of its latest change
    KEY changed (changed)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

-- The names of all kinds. A table of its own: a user's transaction that submits share-locks its kinds here, so that they are not deleted, and
-- others can still pause and park them.
CREATE TABLE IF NOT EXISTS rewheel_kind_names (
    name VARCHAR(64) NOT NULL PRIMARY KEY
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Numbers the changes of kinds. A single row: who changes a kind locks it, so changes commit in the order of their numbers.
CREATE TABLE IF NOT EXISTS rewheel_kind_changes (
    one     TINYINT NOT NULL PRIMARY KEY,
    latest  BIGINT  NOT NULL,
    deleted BIGINT  NOT NULL                                          -- the latest change that deleted a kind
) ENGINE = InnoDB;
INSERT IGNORE INTO rewheel_kind_changes (one, latest, deleted) VALUES (1, 1, 0);

-- The retry budget of each kind.
CREATE TABLE IF NOT EXISTS rewheel_budgets (
    kind       VARCHAR(64) NOT NULL PRIMARY KEY,
    balance    BIGINT      NOT NULL,                                  -- millionths of a retry
    counted_ms BIGINT      NOT NULL                                   -- the floor has been added up to this time
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- When a job was last started under a fleet-wide limit.
CREATE TABLE IF NOT EXISTS rewheel_limits (
    scope   VARCHAR(16)    NOT NULL,                                  -- `kind` or `tenant`
    name    VARBINARY(128) NOT NULL,
    last_ms BIGINT,                                                   -- NULL: never
    PRIMARY KEY (scope, name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Room that holders have reserved under a tenant's job cap.
CREATE TABLE IF NOT EXISTS rewheel_reserved (
    tenant VARBINARY(128) NOT NULL,
    holder BIGINT         NOT NULL,                                   -- rewheel_holders.seq; 0: the row that a reservation locks
    jobs   BIGINT         NOT NULL,
    PRIMARY KEY (tenant, holder)
) ENGINE = InnoDB;

-- The ledger: each transaction appends how many jobs it added and removed. Lines with zeros tell other processes that jobs changed.
CREATE TABLE IF NOT EXISTS rewheel_ledger (
    seq       BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at_ms     BIGINT NOT NULL,
    writer    BIGINT NOT NULL,                                        -- a number that each process chooses at its start
    submitted BIGINT NOT NULL,
    pruned    BIGINT NOT NULL
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS rewheel_audit (
    seq      BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at_ms    BIGINT         NOT NULL,
    who      VARBINARY(255) NOT NULL,
    what     VARBINARY(64)  NOT NULL,
    job      BINARY(16),
    kind     VARCHAR(64),
    `before` LONGBLOB       NOT NULL,
    `after`  LONGBLOB       NOT NULL,
    submit   BINARY(16),                                              -- the submit that replaced the job
    KEY job (job, seq),
    KEY submit (submit)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS rewheel_tokens (
    id         VARBINARY(64)  NOT NULL PRIMARY KEY,                   -- the public id of a token, shown instead of its secret
    name       VARBINARY(255) NOT NULL,
    valid_name VARBINARY(255),                                        -- its name until it is revoked: unique; then NULL
    roles      VARBINARY(255) NOT NULL,
    tenant     VARBINARY(128) NOT NULL,                               -- '' means all tenants
    hash       BINARY(32)     NOT NULL,                               -- SHA-256 of the token
    created_ms BIGINT         NOT NULL,
    expires_ms BIGINT,
    revoked_ms BIGINT,
    UNIQUE KEY valid_name (valid_name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin ROW_FORMAT = DYNAMIC;

-- Idempotency keys and the responses to them.
CREATE TABLE IF NOT EXISTS rewheel_idempotency (
    `key`           BINARY(32) NOT NULL PRIMARY KEY,                  -- a hash of caller and key
    fingerprint     BINARY(32) NOT NULL,                              -- a hash of the request
    run             BINARY(16) NOT NULL,                              -- the current or latest run
    leased_until_ms BIGINT,                                           -- NULL once there is a response
    ends_ms         BIGINT     NOT NULL,                              -- when the key expires
    answer          LONGBLOB   NOT NULL,
    KEY ends (ends_ms)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS rewheel_results (
    job          BINARY(16)      NOT NULL PRIMARY KEY,
    expires_ms   BIGINT          NOT NULL,                            -- when the result is deleted; later, when the row is
    content_type VARBINARY(255),                                      -- NULL if there is no body
    dropped      VARBINARY(1024),                                     -- why the result was not kept; NULL together with the body: it was deleted with its job
    body         LONGBLOB,
    KEY expires (expires_ms)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Jobs whose rows could not be read, and why. Each is paused until an operator resumes or cancels it.
CREATE TABLE IF NOT EXISTS rewheel_unreadable (
    job    BINARY(16) NOT NULL PRIMARY KEY,
    at_ms  BIGINT     NOT NULL,
    reason BLOB       NOT NULL
) ENGINE = InnoDB;

-- Job counts that one node takes for all. A single row.
CREATE TABLE IF NOT EXISTS rewheel_samples (
    one      TINYINT          NOT NULL PRIMARY KEY,
    begun_ms BIGINT,
    counting TINYINT UNSIGNED NOT NULL DEFAULT 0,
    cost_ms  BIGINT           NOT NULL DEFAULT 0,
    taken_ms BIGINT,
    tallies  LONGBLOB
) ENGINE = InnoDB;
INSERT IGNORE INTO rewheel_samples (one) VALUES (1);

-- A failover or restore begins an epoch, on another server or with other data. Fences of epoch n are above n times 2^32.
CREATE TABLE IF NOT EXISTS rewheel_epochs (
    epoch    BIGINT         NOT NULL PRIMARY KEY,
    server   VARBINARY(512) NOT NULL,
    begun_ms BIGINT         NOT NULL
) ENGINE = InnoDB;
