-- move_keys: gives keys ($1, $2, $3) of jobs $4 to jobs $5, with the hashes $6 of their payloads; skips a key that another job has by now.
-- Sorted, so that two transactions that move the same keys cannot deadlock.
UPDATE rewheel.keys SET job = moved.next, payload_hash = moved.payload_hash, state = NULL, expires_ms = NULL
  FROM (SELECT known.place, given.next, given.payload_hash
          FROM (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::bytea[])
                       AS given (kind, tenant, key, job, next, payload_hash)
                 ORDER BY kind, tenant, key) AS given,
               LATERAL (SELECT keys.ctid AS place FROM rewheel.keys
                         WHERE keys.kind = given.kind AND keys.tenant = given.tenant AND keys.key = given.key
                           AND keys.job = given.job FOR UPDATE) AS known) AS moved
 WHERE keys.ctid = moved.place
RETURNING keys.job;
