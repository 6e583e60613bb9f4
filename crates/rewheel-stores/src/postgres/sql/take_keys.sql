-- take_keys: takes keys for jobs; replaces a key that has expired at $1 and skips a key that another job has. Sorted, so that two
-- transactions that take the same keys cannot deadlock.
INSERT INTO rewheel.keys AS known (kind, tenant, key, job, payload_hash)
SELECT kind, tenant, key, job, payload_hash
  FROM unnest($2::text[], $3::text[], $4::text[], $5::uuid[], $6::bytea[]) AS given (kind, tenant, key, job, payload_hash)
 ORDER BY kind, tenant, key
ON CONFLICT (kind, tenant, key) DO UPDATE
   SET job = excluded.job, payload_hash = excluded.payload_hash, state = NULL, expires_ms = NULL
 WHERE known.expires_ms <= $1
RETURNING job;
