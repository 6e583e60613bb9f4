-- lock_lives: locks the live jobs among $1 in the given order, and reads them without payloads.
SELECT job.* FROM unnest($1::uuid[]) AS given (id),
       LATERAL (SELECT {live_job_without_payload}
                  FROM rewheel.jobs WHERE jobs.id = given.id FOR UPDATE OF jobs) AS job;
