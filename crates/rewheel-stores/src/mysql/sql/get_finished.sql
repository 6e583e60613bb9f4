-- get_finished: reads one finished job. Contract: ReadStore::get.
SELECT {ended_job} FROM rewheel_finished WHERE id = ?;
