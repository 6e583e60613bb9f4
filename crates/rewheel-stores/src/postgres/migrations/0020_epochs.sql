-- 0020: epochs of the store. A new one begins when the tables are found on another server than before, or on a server that was promoted:
-- after a failover, a restore, or a move to a copy. Transactions that were acknowledged before may then be missing.

CREATE TABLE rewheel.epochs (
    epoch    bigint PRIMARY KEY,
    began_ms bigint NOT NULL,
    reason   text   COLLATE "C" NOT NULL,    -- `created`, `promoted`, `restored` or `went_back`
    system   bigint,                         -- the server's system identifier; NULL if the server does not tell
    timeline bigint,                         -- grows with each promotion; NULL if the server does not tell
    database oid    NOT NULL,
    place    oid    NOT NULL                 -- this table: another one after it was dropped and restored
);

-- What nodes found missing after a new epoch began: jobs that had been acknowledged to a client, and jobs that had ended and are live
-- again. Each node knows only its own jobs, the latest of them.
CREATE TABLE rewheel.forgotten (
    epoch     bigint NOT NULL,
    node      uuid   NOT NULL,
    at_ms     bigint NOT NULL,
    submitted bigint NOT NULL,
    ended     bigint NOT NULL,
    checked   bigint NOT NULL,
    PRIMARY KEY (epoch, node)
);

-- Tells which server this is. A service that hosts PostgreSQL may not allow all of it.
CREATE FUNCTION rewheel.server(OUT standby boolean, OUT system bigint, OUT timeline bigint, OUT database oid, OUT place oid)
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    standby := pg_catalog.pg_is_in_recovery();
    database := (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database());
    place := 'rewheel.epochs'::pg_catalog.regclass;
    BEGIN
        system := (SELECT system_identifier FROM pg_catalog.pg_control_system());
    EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported THEN
        system := NULL;
    END;
    IF NOT standby THEN
        BEGIN
            timeline := rewheel.timeline();
        EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported THEN
            timeline := NULL;
        END;
    END IF;
END $$;

-- The number of the server's timeline: the first eight digits of the name of a WAL file.
CREATE FUNCTION rewheel.timeline() RETURNS bigint LANGUAGE sql STABLE
    AS $$ SELECT ('x' || pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8))::bit(32)::bigint $$;

-- The fence below which no lease of this epoch is. A failover may forget that a lease with some fence was given to a holder; without the
-- floor, the same fence could be given again. Fails with RW001 on a server that was promoted or restored since the epoch began: a node
-- then begins the next one.
CREATE FUNCTION rewheel.fence_floor() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    latest record;
BEGIN
    SELECT epoch, timeline, place, tableoid AS here INTO latest FROM rewheel.epochs ORDER BY epoch DESC LIMIT 1;
    IF latest.place = latest.here AND (latest.timeline IS NULL OR latest.timeline = rewheel.timeline()) THEN
        RETURN latest.epoch << 32;
    END IF;
    RAISE EXCEPTION 'the store was promoted or restored: a new epoch must begin' USING ERRCODE = 'RW001';
END $$;

-- Begins an epoch after the given one, unless another process has begun one on this server since. Returns whether it did.
CREATE FUNCTION rewheel.begin_epoch(seen bigint, because text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    begun bigint;
BEGIN
    INSERT INTO rewheel.epochs (epoch, began_ms, reason, system, timeline, database, place)
    SELECT greatest(latest.epoch, seen) + 1, rewheel.now_ms(), because, server.system, server.timeline, server.database, server.place
      FROM rewheel.server() AS server
      LEFT JOIN (SELECT * FROM rewheel.epochs ORDER BY epoch DESC LIMIT 1) AS latest ON true
     WHERE coalesce(latest.epoch, -1) <= seen
        OR latest.place IS DISTINCT FROM server.place OR latest.database IS DISTINCT FROM server.database
        OR latest.system IS DISTINCT FROM server.system OR latest.timeline IS DISTINCT FROM server.timeline
    ON CONFLICT (epoch) DO NOTHING
    RETURNING epoch INTO begun;
    IF begun IS NULL THEN
        RETURN false;
    END IF;
    -- A copy made by logical replication has the rows, but not the positions of the sequences.
    PERFORM rewheel.raise_sequence('lanes', 'lane', (SELECT max(lane) FROM rewheel.lanes));
    PERFORM rewheel.raise_sequence('holders', 'seq', (SELECT max(seq) FROM rewheel.holders));
    PERFORM rewheel.raise_sequence('claims', 'seq', (SELECT max(seq) FROM rewheel.claims));
    PERFORM rewheel.raise_sequence('ledger', 'seq', (SELECT max(seq) FROM rewheel.ledger));
    PERFORM rewheel.raise_sequence('audit', 'seq', (SELECT max(seq) FROM rewheel.audit));
    PERFORM rewheel.raise_sequence('group_members', 'place', (SELECT max(place) FROM rewheel.group_members));
    RETURN true;
END $$;

-- Lets a column's sequence continue above a number.
CREATE FUNCTION rewheel.raise_sequence(relation text, attribute text, above bigint) RETURNS bigint LANGUAGE sql AS $$
    SELECT pg_catalog.setval(counter, greatest(pg_catalog.nextval(counter), above))
      FROM (SELECT pg_catalog.pg_get_serial_sequence('rewheel.' || relation, attribute)::pg_catalog.regclass AS counter OFFSET 0) AS it
$$;

INSERT INTO rewheel.epochs (epoch, began_ms, reason, system, timeline, database, place)
SELECT 0, rewheel.now_ms(), 'created', system, timeline, database, place FROM rewheel.server();
