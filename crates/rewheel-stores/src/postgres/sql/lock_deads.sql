-- lock_deads: locks the dead letters among $1 in the given order, and reads them without payloads.
SELECT job.* FROM unnest($1::uuid[]) AS given (id),
       LATERAL (SELECT {ended_job_without_payload}
                  FROM rewheel.dead WHERE dead.id = given.id FOR UPDATE) AS job;
