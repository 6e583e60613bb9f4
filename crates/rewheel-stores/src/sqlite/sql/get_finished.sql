-- get_finished: reads one finished job. Contract: ReadStore::get.
SELECT * FROM finished WHERE id = ?1;
