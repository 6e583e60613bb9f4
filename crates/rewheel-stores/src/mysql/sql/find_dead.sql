-- find_dead: reads the dead letters among the given jobs. Contract: ReadStore::find.
SELECT {ended_job_without_payload} FROM rewheel_dead WHERE id IN ({list});
