-- get_finished: reads one finished job.
SELECT {ended_job} FROM rewheel.finished WHERE id = $1;
