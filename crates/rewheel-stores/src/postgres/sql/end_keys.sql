-- end_keys: the jobs of keys have ended for good. The job is named too: another may have the key by now.
UPDATE rewheel.keys SET state = given.state, expires_ms = given.expires_ms
  FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::bigint[])
       AS given (kind, tenant, key, job, state, expires_ms),
       LATERAL (SELECT keys.ctid AS place FROM rewheel.keys
                 WHERE keys.kind = given.kind AND keys.tenant = given.tenant AND keys.key = given.key
                   AND keys.job = given.job OFFSET 0) AS known
 WHERE keys.ctid = known.place;
