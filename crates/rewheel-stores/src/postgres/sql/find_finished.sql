-- find_finished: reads the finished jobs among $1, without payloads.
SELECT {ended_job_without_payload} FROM rewheel.finished WHERE id = ANY ($1::uuid[]);
