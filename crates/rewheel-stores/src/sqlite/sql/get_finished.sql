-- get_finished: reads one finished job. Contract: ReadStore::get.
SELECT {ended_job} FROM finished WHERE id = ?1;
