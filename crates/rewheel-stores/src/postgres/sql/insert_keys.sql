-- insert_keys: takes keys ($1, $2, $3) that no job has, for jobs $5 with the hashes $6 of their payloads; skips a key that another job has
-- by now, without locking it: a lock would be out of order for a transaction that goes on to lock jobs. $4 is not used, so that the
-- parameters are those of `move_keys`. Sorted, so that two transactions that take the same keys cannot deadlock.
INSERT INTO rewheel.keys (kind, tenant, key, job, payload_hash)
SELECT kind, tenant, key, job, payload_hash
  FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::bytea[])
       AS given (kind, tenant, key, before, job, payload_hash)
 ORDER BY kind, tenant, key
ON CONFLICT (kind, tenant, key) DO NOTHING
RETURNING job;
