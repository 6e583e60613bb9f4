-- 0016: submits that replace a job that waits, or take the key of one that was claimed. The lane of a debounced job has 256 added to its
-- shard.

-- The submit that replaced a job, so that it has no effect when it is sent again.
ALTER TABLE rewheel.audit ADD COLUMN submit uuid;
CREATE INDEX audit_submit ON rewheel.audit (submit) WHERE submit IS NOT NULL;

-- Returns the number of a lane for a job submitted by SQL, which names no shard: any lane of its kind, tenant and priority.
CREATE FUNCTION rewheel.submit_lane(kind text, tenant text, priority integer, debounced boolean) RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    number integer;
BEGIN
    LOOP
        SELECT lanes.lane INTO number FROM rewheel.lanes
         WHERE lanes.kind = kind AND lanes.tenant = coalesce(tenant, '') AND lanes.priority = priority
           AND (lanes.shard >= 256) = debounced;
        IF FOUND THEN
            RETURN number;
        END IF;
        INSERT INTO rewheel.lanes (kind, tenant, priority, shard)
        VALUES (kind, coalesce(tenant, ''), priority, CASE WHEN debounced THEN 256 ELSE 0 END) ON CONFLICT DO NOTHING;
    END LOOP;
END $$;

-- rewheel_submit has four more arguments: see `functions/submit.sql`. A function with other arguments is another function: the old one would make calls ambiguous.
DROP FUNCTION IF EXISTS rewheel.rewheel_submit(
    text, text, text, text, integer, interval, timestamptz, timestamptz, integer, interval, text, text, uuid);
DO $do$
BEGIN
    IF split_part('rewheel.', '.', 1) = 'rewheel' THEN
        DROP FUNCTION IF EXISTS public.rewheel_submit(
            text, text, text, text, integer, interval, timestamptz, timestamptz, integer, interval, text, text, uuid);
    END IF;
EXCEPTION WHEN insufficient_privilege OR invalid_schema_name OR invalid_function_definition THEN
    NULL;       -- then call them by their full names
END $do$;
