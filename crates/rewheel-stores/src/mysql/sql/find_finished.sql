-- find_finished: reads the finished jobs among the given ones. Contract: ReadStore::find.
SELECT {ended_job_without_payload} FROM rewheel_finished WHERE id IN ({list});
