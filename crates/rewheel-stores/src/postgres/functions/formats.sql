-- Keeps holders of older releases away from jobs that they would damage, see `Format` in `rewheel-core`.

-- Notes that a job of a format is about to be stored. Returns the name of a living holder that is too old for it: then the caller must not
-- store the job.
CREATE OR REPLACE FUNCTION rewheel.use_format(wanted integer) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    older text;
BEGIN
    -- Since it was noted, no older holder could register.
    IF EXISTS (SELECT FROM rewheel.formats_used WHERE format >= wanted) THEN
        RETURN NULL;
    END IF;
    SELECT name INTO older FROM rewheel.holders WHERE died_ms IS NULL AND format < wanted ORDER BY seq LIMIT 1;
    IF FOUND THEN
        RETURN older;
    END IF;
    -- The insert locks the table against `refuse_old_holder` until the commit. One may have registered just before: so look again.
    BEGIN
        INSERT INTO rewheel.formats_used (format) VALUES (wanted);
        SELECT name INTO older FROM rewheel.holders WHERE died_ms IS NULL AND format < wanted ORDER BY seq LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'rewheel: an older holder registered';
        END IF;
    EXCEPTION WHEN raise_exception THEN
        RETURN older;
    END;
    RETURN NULL;
END $$;

-- Refuses a holder whose release is too old for a format in use. A release that does not know formats does not ask: so the table does.
CREATE OR REPLACE FUNCTION rewheel.refuse_old_holder() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- The format of this release: no newer one can be in use.
    IF NEW.format >= 4 THEN
        RETURN NEW;
    END IF;
    -- Not while a transaction stores the first job of a format. It does not wait for that: other submits would wait behind it.
    LOCK TABLE rewheel.formats_used IN SHARE MODE NOWAIT;
    IF EXISTS (SELECT FROM rewheel.formats_used WHERE format > NEW.format) THEN
        RAISE EXCEPTION 'rewheel: the release of % is too old for jobs in this store', NEW.name
              USING ERRCODE = 'check_violation', HINT = 'Upgrade it.';
    END IF;
    RETURN NEW;
END $$;

DO $do$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger
                    WHERE tgrelid = 'rewheel.holders'::regclass AND tgname = 'refuse_old_holder') THEN
        CREATE TRIGGER refuse_old_holder BEFORE INSERT ON rewheel.holders FOR EACH ROW EXECUTE FUNCTION rewheel.refuse_old_holder();
    END IF;
END $do$;
