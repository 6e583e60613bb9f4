-- forgotten_ends: of the jobs $1, which had ended, returns those that are live.
SELECT given.id FROM unnest($1::uuid[]) AS given (id)
 WHERE (SELECT 1 FROM rewheel.jobs WHERE jobs.id = given.id) IS NOT NULL;
