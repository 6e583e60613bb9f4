-- get_dead: reads one dead letter. Contract: ReadStore::get.
SELECT {ended_job} FROM rewheel_dead WHERE id = ?;
