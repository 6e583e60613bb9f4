-- forgotten_submits: of the jobs $1, returns those that are in no table.
-- Not EXISTS: the planner could turn it into a join and read whole tables.
SELECT given.id FROM unnest($1::uuid[]) AS given (id)
 WHERE (SELECT 1 FROM rewheel.jobs WHERE jobs.id = given.id) IS NULL
   AND (SELECT 1 FROM rewheel.finished WHERE finished.id = given.id) IS NULL
   AND (SELECT 1 FROM rewheel.dead WHERE dead.id = given.id) IS NULL;
