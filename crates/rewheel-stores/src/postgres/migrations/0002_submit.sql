-- 0002: submitting inside the caller's transaction, from any language with a PostgreSQL driver.

-- Stores a job inside the caller's transaction and returns its id, or the id of the job that already has the key. It wakes no node: the
-- next poll finds the job; rewheel_wake() wakes them. It runs with its owner's rights, so that a role needs only USAGE on this schema.
CREATE FUNCTION rewheel.rewheel_submit(
    kind text, payload text, key text DEFAULT NULL, tenant text DEFAULT NULL, priority integer DEFAULT 5,
    delay interval DEFAULT NULL, due timestamptz DEFAULT NULL, deadline timestamptz DEFAULT NULL,
    attempts_max integer DEFAULT NULL, attempt_timeout interval DEFAULT NULL, shard_key text DEFAULT NULL,
    traceparent text DEFAULT NULL, id uuid DEFAULT NULL
) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER
-- pg_temp comes last: otherwise a caller's temporary type with the name of one used here would run its checks with the owner's rights.
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    control   CONSTANT text := '[\u0001-\u001f\u007f-\u009f]';
    now       CONSTANT bigint := rewheel.now_ms();
    bytes     bytea;
    hash      bytea;
    delay_ms   CONSTANT numeric := coalesce(ceil(extract(epoch FROM delay) * 1000), 0);
    timeout_ms CONSTANT numeric := ceil(extract(epoch FROM attempt_timeout) * 1000);
    due_ms    bigint;
    ends_ms   bigint;
    number    integer;
    job       uuid;
    known     record;
BEGIN
    IF NOT EXISTS (SELECT FROM rewheel.kinds WHERE kinds.name = kind) THEN
        RAISE EXCEPTION 'rewheel: kind % does not exist', kind
              USING ERRCODE = 'foreign_key_violation',
                    HINT = 'Name it in the config, by PUT /v1/kinds, or by an engine with its handler.';
    END IF;
    IF payload IS NULL OR octet_length(payload) > 16777216 THEN
        RAISE EXCEPTION 'rewheel: payload must be JSON of at most 16 MiB' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    BEGIN
        PERFORM payload::json;
    EXCEPTION WHEN invalid_text_representation OR untranslatable_character OR statement_too_complex THEN
        RAISE EXCEPTION 'rewheel: payload must be JSON: %', SQLERRM USING ERRCODE = 'invalid_parameter_value';
    END;
    IF NOT coalesce(priority BETWEEN 0 AND 9, false) THEN
        RAISE EXCEPTION 'rewheel: priority must be 0..9' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length(key) NOT BETWEEN 1 AND 255 OR key ~ control THEN
        RAISE EXCEPTION 'rewheel: key must be 1 to 255 bytes without control characters' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length(shard_key) NOT BETWEEN 1 AND 255 OR shard_key ~ control THEN
        RAISE EXCEPTION 'rewheel: shard_key must be 1 to 255 bytes without control characters'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length(tenant) NOT BETWEEN 1 AND 128 OR tenant ~ control THEN
        RAISE EXCEPTION 'rewheel: tenant must be 1 to 128 bytes without control characters'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF octet_length(traceparent) NOT BETWEEN 1 AND 255 OR traceparent ~ control THEN
        RAISE EXCEPTION 'rewheel: traceparent must be a W3C trace context' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF attempts_max < 1 THEN
        RAISE EXCEPTION 'rewheel: attempts_max must be at least 1' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF timeout_ms NOT BETWEEN 1 AND 1e18 THEN
        RAISE EXCEPTION 'rewheel: attempt_timeout must be more than nothing' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF delay_ms NOT BETWEEN 0 AND 1e18 THEN
        RAISE EXCEPTION 'rewheel: delay must not be less than nothing' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT isfinite(due) OR NOT isfinite(deadline) THEN
        RAISE EXCEPTION 'rewheel: due and deadline must be finite' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF delay IS NOT NULL AND due IS NOT NULL THEN
        RAISE EXCEPTION 'rewheel: give delay or due, not both' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    due_ms := coalesce(floor(extract(epoch FROM due) * 1000)::bigint, now + delay_ms::bigint);
    ends_ms := floor(extract(epoch FROM deadline) * 1000)::bigint;
    bytes := convert_to(payload, 'UTF8');
    job := coalesce(id, (lpad(to_hex(now), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid);
    IF key IS NOT NULL THEN
        hash := sha256(bytes);
        LOOP
            SELECT keys.job, keys.payload_hash INTO known FROM rewheel.keys
             WHERE keys.kind = kind AND keys.tenant = coalesce(tenant, '') AND keys.key = key
               AND (keys.expires_ms IS NULL OR keys.expires_ms > now);
            IF FOUND AND known.payload_hash <> hash THEN
                RAISE EXCEPTION 'rewheel: key % is that of job %, which has another payload', key, known.job
                      USING ERRCODE = 'unique_violation';
            ELSIF FOUND THEN
                RETURN known.job;
            END IF;
            EXIT WHEN ends_ms <= now OR ends_ms < due_ms;
            INSERT INTO rewheel.keys AS taken (kind, tenant, key, job, payload_hash)
            VALUES (kind, coalesce(tenant, ''), key, job, hash)
            ON CONFLICT ON CONSTRAINT keys_pkey DO UPDATE
               SET job = excluded.job, payload_hash = excluded.payload_hash, state = NULL, expires_ms = NULL
             WHERE taken.expires_ms <= now;
            EXIT WHEN FOUND;
        END LOOP;
    END IF;
    IF ends_ms <= now OR ends_ms < due_ms THEN
        RAISE EXCEPTION 'rewheel: deadline comes before the job could run' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The insert detects a live job with this id. A reused id of an ended job would conflict when the new job ends.
    IF EXISTS (SELECT FROM rewheel.dead WHERE dead.id = job) OR EXISTS (SELECT FROM rewheel.finished WHERE finished.id = job) THEN
        RAISE EXCEPTION 'rewheel: id % is that of a job that has ended', job USING ERRCODE = 'unique_violation';
    END IF;
    LOOP
        SELECT lanes.lane INTO number FROM rewheel.lanes
         WHERE lanes.kind = kind AND lanes.tenant = coalesce(tenant, '') AND lanes.priority = priority;
        EXIT WHEN FOUND;
        INSERT INTO rewheel.lanes (kind, tenant, priority) VALUES (kind, coalesce(tenant, ''), priority) ON CONFLICT DO NOTHING;
    END LOOP;
    INSERT INTO rewheel.jobs (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                              takeovers_counted, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, key, shard_key,
                              traceparent, payload)
    VALUES (job, number, 'scheduled', due_ms, 'submitted', 0, 1, 0, 0, 0,
            0, now, ends_ms, attempts_max, timeout_ms::bigint, key, shard_key,
            traceparent, bytes);
    INSERT INTO rewheel.ledger (at_ms, submitted, pruned) VALUES (now, 1, 0);
    RETURN job;
END $$;

-- Wakes all nodes when the caller's transaction commits.
CREATE FUNCTION rewheel.rewheel_wake() RETURNS void LANGUAGE sql SET search_path = pg_catalog
    AS $$ SELECT pg_notify(split_part('rewheel.', '.', 1), '') $$;

-- The same two functions without the schema name, if the database has only one Rewheel and its user may create them.
DO $do$
BEGIN
    IF split_part('rewheel.', '.', 1) = 'rewheel' THEN
        -- OR REPLACE: these functions remain if the schema is dropped.
        CREATE OR REPLACE FUNCTION public.rewheel_submit(
            kind text, payload text, key text DEFAULT NULL, tenant text DEFAULT NULL, priority integer DEFAULT 5,
            delay interval DEFAULT NULL, due timestamptz DEFAULT NULL, deadline timestamptz DEFAULT NULL,
            attempts_max integer DEFAULT NULL, attempt_timeout interval DEFAULT NULL, shard_key text DEFAULT NULL,
            traceparent text DEFAULT NULL, id uuid DEFAULT NULL
        ) RETURNS uuid LANGUAGE sql AS $$
            SELECT rewheel.rewheel_submit(kind, payload, key, tenant, priority, delay, due, deadline, attempts_max,
                                          attempt_timeout, shard_key, traceparent, id)
        $$;
        CREATE OR REPLACE FUNCTION public.rewheel_wake() RETURNS void LANGUAGE sql AS $$ SELECT rewheel.rewheel_wake() $$;
    END IF;
EXCEPTION WHEN insufficient_privilege OR invalid_schema_name OR invalid_function_definition THEN
    NULL;       -- then call them by their full names
END $do$;
