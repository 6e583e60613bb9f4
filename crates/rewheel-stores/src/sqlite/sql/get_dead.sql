-- get_dead: reads one dead letter. Contract: ReadStore::get.
SELECT {ended_job} FROM dead WHERE id = ?1;
