-- get_dead: reads one dead letter. Contract: ReadStore::get.
SELECT * FROM dead WHERE id = ?1;
