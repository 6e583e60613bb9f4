-- drop_jobs: deletes live jobs that end without retention.
WITH tries AS (DELETE FROM rewheel.attempts WHERE job = ANY ($1::uuid[]))
DELETE FROM rewheel.jobs WHERE id = ANY ($1::uuid[]);
