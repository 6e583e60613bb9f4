-- 0029: corrections of two functions.

-- Lets a column's sequence continue above a number. A sequence that is beyond it already is left alone: other sessions may be using it,
-- and to set it to a number that was read a moment ago would give out the numbers since then again.
CREATE OR REPLACE FUNCTION rewheel.raise_sequence(relation text, attribute text, above bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    counter regclass := pg_catalog.pg_get_serial_sequence('rewheel.' || relation, attribute);
    reached bigint   := pg_catalog.nextval(counter);
BEGIN
    IF above > reached THEN
        RETURN pg_catalog.setval(counter, above);
    END IF;
    RETURN reached;
END $$;

-- As before, but a table of another database of the server that has the same OID is not a reader: a database that was made from this one
-- as its template has such tables.
-- Empties a bin at the given time, adds a line to the ledger, and returns the number of jobs. Returns NULL if the bin cannot be emptied
-- now: another node is doing it, another transaction uses the bin, or a job in it has not expired.
CREATE OR REPLACE FUNCTION rewheel.empty_bin(nr smallint, at_ms bigint) RETURNS bigint LANGUAGE plpgsql
    SET enable_seqscan = on SET enable_indexonlyscan = on
    AS $$
DECLARE
    name    text := format('rewheel.finished_bin_%s', nr);
    readers text[];
    here    oid := (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database());
    jobs    bigint;
    early   bigint;
BEGIN
    PERFORM FROM rewheel.bins WHERE bin = nr AND from_ms + width_ms <= at_ms FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- A lock that excludes writers, so that the count is exact. There are none unless a transaction has been open since before the bin
    -- expired. Readers go on. An autovacuum of the table gives way within this time.
    PERFORM set_config('lock_timeout', '2s', true);
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', name);
    -- Do not count while a backup or a report reads the table: it keeps its lock for long. Reads of the store take milliseconds.
    readers := ARRAY (SELECT virtualtransaction FROM pg_catalog.pg_locks
                       WHERE database = here AND relation = name::regclass AND granted AND pid <> pg_backend_pid());
    IF cardinality(readers) > 0 THEN
        PERFORM pg_sleep(0.1);
        IF EXISTS (SELECT FROM pg_catalog.pg_locks
                    WHERE database = here AND relation = name::regclass AND granted AND virtualtransaction = ANY (readers)) THEN
            RETURN NULL;
        END IF;
    END IF;
    EXECUTE format('SELECT count(*), count(*) FILTER (WHERE expires_ms > $1) FROM %s', name) INTO jobs, early USING at_ms;
    IF early > 0 THEN
        RETURN NULL;
    END IF;
    -- Reads of finished jobs wait behind this lock, so it waits only for a moment.
    PERFORM set_config('lock_timeout', '100ms', true);
    EXECUTE format('TRUNCATE TABLE %s', name);
    IF jobs > 0 THEN
        INSERT INTO rewheel.ledger (at_ms, submitted, pruned) VALUES (at_ms, 0, jobs);
    END IF;
    DELETE FROM rewheel.bins WHERE bin = nr;
    RETURN jobs;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN NULL;
END $$;
