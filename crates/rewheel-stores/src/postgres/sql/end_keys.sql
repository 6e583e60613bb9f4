-- end_keys: stores the final state of jobs in their keys. $1 are their lanes. Each key is matched with its job: another job may have the
-- key by now.
UPDATE rewheel.keys SET state = given.state, expires_ms = given.expires_ms
  FROM unnest($1::int[], $2::text[], $3::uuid[], $4::text[], $5::bigint[]) AS given (lane, key, job, state, expires_ms),
       LATERAL (SELECT lanes.kind, lanes.tenant FROM rewheel.lanes WHERE lanes.lane = given.lane OFFSET 0) AS named,
       LATERAL (SELECT keys.ctid AS place FROM rewheel.keys
                 WHERE keys.kind = named.kind AND keys.tenant = named.tenant AND keys.key = given.key
                   AND keys.job = given.job OFFSET 0) AS known
 WHERE keys.ctid = known.place;
