-- insert_key: takes a key for a job, and replaces an expired one.
INSERT INTO keys (kind, tenant, key, job, payload_hash) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (kind, tenant, key) DO UPDATE
   SET job = excluded.job, payload_hash = excluded.payload_hash, state = NULL, expires_ms = NULL;
