-- 0026: lines of groups that need a look are listed; indexes keep dead letters apart; the store knows which formats are in use; the SQL
-- functions for users are applied by revision, not by migration.

-- Lines to look at, from transactions of users: such a transaction locks no line, and a node does not know when it commits.
CREATE TABLE rewheel.group_checks (
    xact      bigint NOT NULL DEFAULT txid_current(),     -- a look starts with the transactions that the one before could not see
    group_key text   COLLATE "C" NOT NULL,
    kind      text   COLLATE "C" NOT NULL,
    tenant    text   COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
CREATE INDEX group_checks_xact ON rewheel.group_checks (xact);

-- The next job of a line is found beside any number of dead letters, and so are the jobs of one group beside any number of others.
CREATE INDEX group_members_live ON rewheel.group_members (group_key, kind, tenant, place) WHERE NOT dead;
CREATE INDEX group_members_dead ON rewheel.group_members (group_key, kind, tenant, place) WHERE dead;
CREATE INDEX group_members_key ON rewheel.group_members (group_key, dead, job);
DROP INDEX rewheel.group_members_line;

-- A turn is a time: after a restore, a counter would start lower than the numbers that other services have seen.
ALTER TABLE rewheel.group_heads DROP COLUMN turn;

-- The formats that stored jobs have used, see `holders.format`. Only grows. Several transactions may add the same one.
CREATE TABLE rewheel.formats_used (format integer NOT NULL);
INSERT INTO rewheel.formats_used SELECT min(format) FROM rewheel.holders WHERE died_ms IS NULL HAVING min(format) > 0;
INSERT INTO rewheel.formats_used SELECT 4 WHERE EXISTS (SELECT FROM rewheel.group_members);

-- The revision of the SQL functions in `functions`: one row.
CREATE TABLE rewheel.functions (revision integer NOT NULL);
INSERT INTO rewheel.functions VALUES (0);

-- These tables have no key: for logical replication, the whole row identifies a row.
ALTER TABLE rewheel.group_checks REPLICA IDENTITY FULL;
ALTER TABLE rewheel.formats_used REPLICA IDENTITY FULL;
ALTER TABLE rewheel.functions REPLICA IDENTITY FULL;
