-- find_key_jobs: reads the jobs that have these keys, the state of each, whether it waits to be claimed for the first time, and whether the
-- key has expired at $1. One statement is one snapshot: a job could move between two statements.
SELECT given.nth, known.job, known.payload_hash,
       coalesce(known.state, (SELECT jobs.state FROM rewheel.jobs WHERE jobs.id = known.job),
                (SELECT dead.state FROM rewheel.dead WHERE dead.id = known.job)),
       coalesce((SELECT jobs.fence = 0 FROM rewheel.jobs WHERE jobs.id = known.job), false),
       coalesce(known.expires_ms <= $1, false)
  FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS given (kind, tenant, key, nth),
       LATERAL (SELECT job, payload_hash, state, expires_ms FROM rewheel.keys
                 WHERE keys.kind = given.kind AND keys.tenant = given.tenant AND keys.key = given.key OFFSET 0) AS known;
