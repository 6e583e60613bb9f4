-- get_finished: one job that ended. Contract: ReadStore::get.
SELECT * FROM finished WHERE id = ?1;
