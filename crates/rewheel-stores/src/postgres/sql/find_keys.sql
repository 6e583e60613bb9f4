-- find_keys: reads the jobs that have these keys, if the keys have not expired at $1, and the state of each. One statement is one
-- snapshot: a job could move between two statements.
SELECT given.nth, known.job, known.payload_hash,
       coalesce(known.state, (SELECT jobs.state FROM rewheel.jobs WHERE jobs.id = known.job),
                (SELECT dead.state FROM rewheel.dead WHERE dead.id = known.job))
  FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS given (kind, tenant, key, nth),
       LATERAL (SELECT job, payload_hash, state FROM rewheel.keys
                 WHERE keys.kind = given.kind AND keys.tenant = given.tenant AND keys.key = given.key
                   AND (expires_ms IS NULL OR expires_ms > $1) OFFSET 0) AS known;
