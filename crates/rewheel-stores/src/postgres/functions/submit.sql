-- rewheel_submit: stores a job inside the caller's transaction, from any language with a PostgreSQL driver, and returns its id, or the id
-- of the job that already has the key. It wakes no node: the next poll finds the job; rewheel_wake() wakes them. It runs with its owner's
-- rights, so that a role needs only USAGE on this schema. If it gets other arguments, a migration must drop this one first: a function with
-- other arguments is another function, and calls would be ambiguous.
CREATE OR REPLACE FUNCTION rewheel.rewheel_submit(
    kind text, payload text, key text DEFAULT NULL, tenant text DEFAULT NULL, priority integer DEFAULT 5,
    delay interval DEFAULT NULL, due timestamptz DEFAULT NULL, deadline timestamptz DEFAULT NULL,
    attempts_max integer DEFAULT NULL, attempt_timeout interval DEFAULT NULL, shard_key text DEFAULT NULL,
    traceparent text DEFAULT NULL, id uuid DEFAULT NULL, unique_until text DEFAULT NULL, on_duplicate text DEFAULT NULL,
    debounce interval DEFAULT NULL, debounce_max interval DEFAULT NULL, group_key text DEFAULT NULL
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
    quiet_ms   CONSTANT numeric := ceil(extract(epoch FROM debounce) * 1000);
    limit_ms   CONSTANT numeric := coalesce(ceil(extract(epoch FROM debounce_max) * 1000), quiet_ms * 10);
    replaces   CONSTANT boolean := debounce IS NOT NULL OR coalesce(on_duplicate = 'replace', false);
    takes      CONSTANT boolean := debounce IS NOT NULL OR coalesce(unique_until = 'claimed', false);
    due_ms    bigint;
    ends_ms   bigint;
    number    integer;
    job       uuid;
    known     record;
    waiting   record;
    older     text;
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
    IF octet_length(group_key) NOT BETWEEN 1 AND 255 OR group_key ~ control THEN
        RAISE EXCEPTION 'rewheel: group_key must be 1 to 255 bytes without control characters'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF group_key IS NOT NULL AND replaces THEN
        RAISE EXCEPTION 'rewheel: group_key cannot be combined with debounce or on_duplicate replace'
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
    IF unique_until NOT IN ('ended', 'claimed') THEN
        RAISE EXCEPTION 'rewheel: unique_until must be ended or claimed' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF on_duplicate NOT IN ('answer', 'replace') THEN
        RAISE EXCEPTION 'rewheel: on_duplicate must be answer or replace' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF key IS NULL AND (replaces OR takes) THEN
        RAISE EXCEPTION 'rewheel: % needs a key', CASE WHEN debounce IS NOT NULL THEN 'debounce'
                                                       WHEN replaces THEN 'on_duplicate' ELSE 'unique_until' END
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF debounce IS NULL AND debounce_max IS NOT NULL THEN
        RAISE EXCEPTION 'rewheel: debounce_max needs debounce' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF quiet_ms NOT BETWEEN 1 AND 1e17 THEN
        RAISE EXCEPTION 'rewheel: debounce must be more than nothing' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF limit_ms NOT BETWEEN quiet_ms AND 1e18 THEN
        RAISE EXCEPTION 'rewheel: debounce_max must not be shorter than debounce' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF debounce IS NOT NULL AND (unique_until = 'ended' OR on_duplicate = 'answer') THEN
        RAISE EXCEPTION 'rewheel: debounce needs unique_until claimed and on_duplicate replace'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF debounce IS NOT NULL AND (delay IS NOT NULL OR due IS NOT NULL) THEN
        RAISE EXCEPTION 'rewheel: give debounce, delay or due, not several' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF debounce IS NOT NULL THEN
        older := rewheel.use_format(2);
        IF older IS NOT NULL THEN
            RAISE EXCEPTION 'rewheel: the node or worker % runs an older release, which cannot handle debounced jobs', older
                  USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Upgrade it.';
        END IF;
    END IF;
    IF NOT isfinite(due) OR NOT isfinite(deadline) THEN
        RAISE EXCEPTION 'rewheel: due and deadline must be finite' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF delay IS NOT NULL AND due IS NOT NULL THEN
        RAISE EXCEPTION 'rewheel: give delay or due, not both' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    due_ms := coalesce(floor(extract(epoch FROM due) * 1000)::bigint, now + coalesce(quiet_ms, delay_ms)::bigint);
    ends_ms := floor(extract(epoch FROM deadline) * 1000)::bigint;
    bytes := convert_to(payload, 'UTF8');
    job := coalesce(id, (lpad(to_hex(now), 12, '0') || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid);
    -- The transaction that sent this submit before has committed.
    IF replaces AND id IS NOT NULL THEN
        SELECT audit.job INTO known FROM rewheel.audit WHERE audit.submit = id;
        IF FOUND THEN
            RETURN known.job;
        END IF;
    END IF;
    IF key IS NOT NULL THEN
        hash := sha256(bytes);
        LOOP
            SELECT keys.job, keys.payload_hash, coalesce(keys.expires_ms <= now, false) AS expired INTO known FROM rewheel.keys
             WHERE keys.kind = kind AND keys.tenant = coalesce(tenant, '') AND keys.key = key;
            IF NOT FOUND OR known.expired THEN
                EXIT WHEN ends_ms <= now OR ends_ms < due_ms;
                -- Neither statement locks the key of another job: such a lock would be out of order when a job is locked next.
                IF NOT FOUND THEN
                    INSERT INTO rewheel.keys (kind, tenant, key, job, payload_hash) VALUES (kind, coalesce(tenant, ''), key, job, hash)
                    ON CONFLICT ON CONSTRAINT keys_pkey DO NOTHING;
                ELSE
                    UPDATE rewheel.keys SET job = job, payload_hash = hash, state = NULL, expires_ms = NULL
                     WHERE keys.kind = kind AND keys.tenant = coalesce(tenant, '') AND keys.key = key AND keys.job = known.job;
                END IF;
                EXIT WHEN FOUND;
                CONTINUE;       -- another transaction took the key
            END IF;
            IF replaces OR takes THEN
                -- The job is locked before its key, as by a transaction that ends it.
                IF replaces THEN
                    SELECT jobs.created_ms, jobs.due_ms, jobs.group_key INTO waiting FROM rewheel.jobs
                     WHERE jobs.id = known.job AND jobs.fence = 0 FOR UPDATE;
                    -- While it is locked, no node can release it.
                    IF waiting.group_key IS NOT NULL THEN
                        INSERT INTO rewheel.group_checks (group_key, kind, tenant)
                        VALUES (waiting.group_key, kind, coalesce(tenant, ''));
                    ELSE
                        PERFORM WHERE waiting.due_ms IS NOT NULL;       -- whether it was found
                    END IF;
                ELSE
                    SELECT jobs.created_ms, jobs.due_ms INTO waiting FROM rewheel.jobs WHERE jobs.id = known.job AND jobs.fence = 0;
                END IF;
                IF FOUND AND replaces THEN
                    due_ms := least(due_ms, waiting.created_ms + limit_ms::bigint);
                    EXIT WHEN ends_ms <= now OR ends_ms < due_ms;
                    number := rewheel.submit_lane(kind, tenant, priority, debounce IS NOT NULL);
                    UPDATE rewheel.jobs
                       SET lane = number, due_ms = due_ms, because = 'submitted', deadline_ms = ends_ms, attempts_max = attempts_max,
                           attempt_timeout_ms = timeout_ms::bigint, backoff = NULL, shard_key = shard_key, traceparent = traceparent,
                           parent = NULL, attempt = 0, attempts_before = 0, payload = bytes, version = version + 1
                     WHERE jobs.id = known.job;
                    UPDATE rewheel.keys SET payload_hash = hash
                     WHERE keys.kind = kind AND keys.tenant = coalesce(tenant, '') AND keys.key = key AND keys.job = known.job;
                    INSERT INTO rewheel.audit (at_ms, who, what, job, kind, before, after, submit)
                    VALUES (now, 'submit', 'replace', known.job, kind,
                            json_build_array(json_build_array('due', waiting.due_ms::text))::text,
                            json_build_array(json_build_array('due', due_ms::text), json_build_array('submit', job))::text, job);
                    RETURN known.job;
                ELSIF NOT FOUND AND takes THEN
                    EXIT WHEN ends_ms <= now OR ends_ms < due_ms;
                    UPDATE rewheel.keys SET job = job, payload_hash = hash, state = NULL, expires_ms = NULL
                     WHERE keys.kind = kind AND keys.tenant = coalesce(tenant, '') AND keys.key = key AND keys.job = known.job;
                    EXIT WHEN FOUND;
                    CONTINUE;       -- another transaction took the key
                END IF;
            END IF;
            IF known.payload_hash <> hash THEN
                RAISE EXCEPTION 'rewheel: key % is that of job %, which has another payload', key, known.job
                      USING ERRCODE = 'unique_violation';
            END IF;
            RETURN known.job;
        END LOOP;
    END IF;
    IF ends_ms <= now OR ends_ms < due_ms THEN
        RAISE EXCEPTION 'rewheel: deadline comes before the job could run' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF group_key IS NOT NULL THEN
        older := rewheel.use_format(4);
        IF older IS NOT NULL THEN
            RAISE EXCEPTION 'rewheel: the node or worker % runs an older release, which does not know groups', older
                  USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Upgrade it.';
        END IF;
    END IF;
    -- The insert detects a live job with this id. A reused id of an ended job would conflict when the new job ends.
    -- Finished jobs are in many tables, and only an id that the caller chose can be among them.
    IF EXISTS (SELECT FROM rewheel.dead WHERE dead.id = job)
       OR (id IS NOT NULL AND EXISTS (SELECT FROM rewheel.finished WHERE finished.id = job)) THEN
        RAISE EXCEPTION 'rewheel: id % is that of a job that has ended', job USING ERRCODE = 'unique_violation';
    END IF;
    number := rewheel.submit_lane(kind, tenant, priority, debounce IS NOT NULL);
    INSERT INTO rewheel.jobs (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                              takeovers_counted, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, key, shard_key,
                              traceparent, payload, group_key, shelf)
    VALUES (job, number, 'scheduled', due_ms, 'submitted', 0, 1, 0, 0, 0,
            0, now, ends_ms, attempts_max, timeout_ms::bigint, key, shard_key,
            traceparent, bytes, group_key, CASE WHEN group_key IS NULL THEN 'due' ELSE 'blocked' END);
    -- A caller's transaction may stay open for long. So it only joins the line, and locks nothing that another job of the group needs.
    -- After the commit a node sees whether the job is the first of its line.
    IF group_key IS NOT NULL THEN
        INSERT INTO rewheel.group_members (job, group_key, kind, tenant) VALUES (job, group_key, kind, coalesce(tenant, ''));
        INSERT INTO rewheel.group_checks (group_key, kind, tenant) VALUES (group_key, kind, coalesce(tenant, ''));
    END IF;
    INSERT INTO rewheel.ledger (at_ms, submitted, pruned) VALUES (now, 1, 0);
    RETURN job;
END $$;

-- The same without the schema name, if the database has only one Rewheel and its user may create them.
DO $do$
BEGIN
    IF split_part('rewheel.', '.', 1) = 'rewheel' THEN
        -- OR REPLACE: the function remains if the schema is dropped.
        CREATE OR REPLACE FUNCTION public.rewheel_submit(
            kind text, payload text, key text DEFAULT NULL, tenant text DEFAULT NULL, priority integer DEFAULT 5,
            delay interval DEFAULT NULL, due timestamptz DEFAULT NULL, deadline timestamptz DEFAULT NULL,
            attempts_max integer DEFAULT NULL, attempt_timeout interval DEFAULT NULL, shard_key text DEFAULT NULL,
            traceparent text DEFAULT NULL, id uuid DEFAULT NULL, unique_until text DEFAULT NULL, on_duplicate text DEFAULT NULL,
            debounce interval DEFAULT NULL, debounce_max interval DEFAULT NULL, group_key text DEFAULT NULL
        ) RETURNS uuid LANGUAGE sql AS $$
            SELECT rewheel.rewheel_submit(kind, payload, key, tenant, priority, delay, due, deadline, attempts_max,
                                          attempt_timeout, shard_key, traceparent, id, unique_until, on_duplicate, debounce,
                                          debounce_max, group_key)
        $$;
    END IF;
EXCEPTION WHEN insufficient_privilege OR invalid_schema_name OR invalid_function_definition THEN
    NULL;       -- then call them by their full names
END $do$;
