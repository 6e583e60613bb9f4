-- drop_jobs: live jobs end for good, and are not kept.
WITH tries AS (DELETE FROM rewheel.attempts WHERE job = ANY ($1::uuid[]))
DELETE FROM rewheel.jobs WHERE id = ANY ($1::uuid[]);
