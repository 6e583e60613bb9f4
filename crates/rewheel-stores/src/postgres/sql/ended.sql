-- ended: returns those of jobs $1 that are not in the hot table. Contract: ReadStore::ended. Each is looked up by id, whatever the
-- statistics say.
SELECT given.id FROM unnest($1::uuid[]) AS given (id)
 WHERE (SELECT jobs.id FROM rewheel.jobs WHERE jobs.id = given.id) IS NULL;
