-- vacuum: removes dead rows of live jobs. It neither waits for another vacuum of the table nor truncates it, which would lock out everybody,
-- and it leaves the other processors to the jobs.
VACUUM (SKIP_LOCKED, TRUNCATE false, PARALLEL 0) rewheel.jobs
