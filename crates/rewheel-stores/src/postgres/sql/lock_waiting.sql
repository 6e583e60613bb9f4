-- lock_waiting: locks those of jobs $1 that wait to be claimed for the first time, in the given order, and reads them with as much of
-- their payloads as the audit log keeps.
SELECT job.* FROM unnest($1::uuid[]) AS given (id),
       LATERAL (SELECT {live_job_without_payload}, substring(jobs.payload FROM 1 FOR 4096) AS payload_start
                  FROM rewheel.jobs WHERE jobs.id = given.id AND jobs.fence = 0 FOR UPDATE OF jobs) AS job;
