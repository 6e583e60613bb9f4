-- 0027: finished jobs in bins. A bin holds jobs that expire at about the same time, and is emptied at once: a deleted row would stay in
-- the table and its indexes until vacuum removes it. See docs/decisions/0055-finished-jobs-in-bins.md.

-- The jobs that ended before this migration, or on nodes of an older release. They are deleted row by row.
ALTER TABLE rewheel.finished RENAME TO finished_before;

-- Columns are in the order of their alignment, so that no bytes are lost between them; those that are NULL take none. No index contains
-- the time of expiry: a job belongs to a bin that expires later than the job.
CREATE TABLE rewheel.finished_bins (
    due_ms             bigint   NOT NULL,
    created_ms         bigint   NOT NULL,
    ended_ms           bigint   NOT NULL,
    expires_ms         bigint   NOT NULL,
    fence              bigint   NOT NULL,
    version            bigint   NOT NULL,
    id                 uuid     NOT NULL,
    lane               integer  NOT NULL,
    attempt            integer  NOT NULL,
    attempts_before    integer  NOT NULL,
    takeovers          integer  NOT NULL,
    takeovers_counted  integer  NOT NULL,
    settled_by         integer,
    settled_fence      bigint,
    started_ms         bigint,
    duration_ms        bigint,
    deadline_ms        bigint,
    attempts_max       bigint,
    attempt_timeout_ms bigint,
    instant_ms         bigint,
    turn               bigint,
    ran_by             uuid,
    parent             uuid,
    bin                smallint NOT NULL,
    state              text     COLLATE "C" NOT NULL,
    because            text     COLLATE "C" NOT NULL,
    backoff            text     COLLATE "C",
    key                text     COLLATE "C",
    shard_key          text     COLLATE "C",
    group_key          text     COLLATE "C",
    traceparent        text     COLLATE "C",
    failure_category   text     COLLATE "C",
    failure_code       text     COLLATE "C",
    failure_message    text     COLLATE "C",
    success_code       text,
    payload            bytea    NOT NULL
) PARTITION BY LIST (bin);

-- Bin 0 takes jobs for which no other bin is open, and jobs that others refer to: retried ones, whose failed attempts are on record, jobs of
-- groups and follow-ups. It is pruned row by row. So the other bins need one index only, and nothing is left behind when they are
-- emptied. Each has its own primary key, because one of all bins would contain the bin. All bins exist from the start: what runs needs no
-- right to create tables, and a replica gets the same tables.
DO $do$
BEGIN
    FOR bin IN 0..19 LOOP
        EXECUTE format('CREATE TABLE rewheel.finished_bin_%1$s PARTITION OF rewheel.finished_bins (PRIMARY KEY (id)) FOR VALUES IN (%1$s)', bin);
    END LOOP;
END $do$;
CREATE INDEX finished_bin_0_expires ON rewheel.finished_bin_0 (expires_ms);
CREATE INDEX finished_bin_0_parent ON rewheel.finished_bin_0 (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX finished_bin_0_group ON rewheel.finished_bin_0 (group_key, id) WHERE group_key IS NOT NULL;

-- The bins in use, without bin 0: which jobs a bin takes, by their time of expiry.
CREATE TABLE rewheel.bins (
    bin      smallint PRIMARY KEY,
    width_ms bigint   NOT NULL,
    from_ms  bigint   NOT NULL,
    UNIQUE (width_ms, from_ms)
);

-- Empties a bin at the given time, adds a line to the ledger, and returns the number of jobs. Returns NULL if the bin cannot be emptied
-- now: another node is doing it, another transaction uses the bin, or a job in it has not expired.
CREATE FUNCTION rewheel.empty_bin(nr smallint, at_ms bigint) RETURNS bigint LANGUAGE plpgsql
    SET enable_seqscan = on SET enable_indexonlyscan = on
    AS $$
DECLARE
    name    text := format('rewheel.finished_bin_%s', nr);
    readers text[];
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
                       WHERE relation = name::regclass AND granted AND pid <> pg_backend_pid());
    IF cardinality(readers) > 0 THEN
        PERFORM pg_sleep(0.1);
        IF EXISTS (SELECT FROM pg_catalog.pg_locks
                    WHERE relation = name::regclass AND granted AND virtualtransaction = ANY (readers)) THEN
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

-- All finished jobs, for everybody who reads them. Nodes of the older release also write to it. Their prune would look for expired jobs
-- and delete them by row position, which is not unique here: `expires_ms` and `ctid` are NULL, so it finds nothing.
CREATE VIEW rewheel.finished AS
    SELECT id, due_ms, created_ms, ended_ms, NULL::bigint AS expires_ms, fence, version, lane, attempt, attempts_before, takeovers,
           takeovers_counted, state, because, settled_by, settled_fence, deadline_ms, attempts_max, attempt_timeout_ms, backoff, key,
           shard_key, traceparent, failure_category, failure_code, failure_message, payload, parent, ran_by, started_ms, duration_ms,
           success_code, instant_ms, group_key, turn, NULL::tid AS ctid
      FROM rewheel.finished_bins
    UNION ALL
    SELECT id, due_ms, created_ms, ended_ms, NULL::bigint AS expires_ms, fence, version, lane, attempt, attempts_before, takeovers,
           takeovers_counted, state, because, settled_by, settled_fence, deadline_ms, attempts_max, attempt_timeout_ms, backoff, key,
           shard_key, traceparent, failure_category, failure_code, failure_message, payload, parent, ran_by, started_ms, duration_ms,
           success_code, instant_ms, group_key, turn, NULL::tid AS ctid
      FROM rewheel.finished_before;

CREATE FUNCTION rewheel.insert_finished() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rewheel.finished_before (
        id, due_ms, created_ms, ended_ms, expires_ms, fence, version, lane, attempt, attempts_before, takeovers, takeovers_counted,
        state, because, settled_by, settled_fence, deadline_ms, attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent,
        failure_category, failure_code, failure_message, payload, parent, ran_by, started_ms, duration_ms, success_code, instant_ms,
        group_key, turn)
    VALUES (
        NEW.id, NEW.due_ms, NEW.created_ms, NEW.ended_ms, NEW.expires_ms, NEW.fence, NEW.version, NEW.lane, NEW.attempt,
        NEW.attempts_before, NEW.takeovers, NEW.takeovers_counted, NEW.state, NEW.because, NEW.settled_by, NEW.settled_fence,
        NEW.deadline_ms, NEW.attempts_max, NEW.attempt_timeout_ms, NEW.backoff, NEW.key, NEW.shard_key, NEW.traceparent,
        NEW.failure_category, NEW.failure_code, NEW.failure_message, NEW.payload, NEW.parent, NEW.ran_by, NEW.started_ms,
        NEW.duration_ms, NEW.success_code, NEW.instant_ms, NEW.group_key, NEW.turn);
    RETURN NEW;
END $$;
CREATE TRIGGER insert_finished INSTEAD OF INSERT ON rewheel.finished FOR EACH ROW EXECUTE FUNCTION rewheel.insert_finished();

-- Without it the prune of an older release, which deletes nothing here, would fail.
CREATE FUNCTION rewheel.delete_finished() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER delete_finished INSTEAD OF DELETE ON rewheel.finished FOR EACH ROW EXECUTE FUNCTION rewheel.delete_finished();

-- Roles that could read the table can read the view.
DO $do$
DECLARE
    reader text;
BEGIN
    FOR reader IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END
          FROM pg_catalog.pg_class, LATERAL aclexplode(relacl)
         WHERE pg_class.oid = 'rewheel.finished_before'::regclass AND privilege_type = 'SELECT'
    LOOP
        EXECUTE format('GRANT SELECT ON rewheel.finished TO %s', reader);
    END LOOP;
END $do$;
