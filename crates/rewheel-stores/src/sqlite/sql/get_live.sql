-- get_live: one job of the hot table. Contract: ReadStore::get.
SELECT jobs.*, holders.id AS holder_id FROM jobs LEFT JOIN holders ON holders.seq = jobs.holder WHERE jobs.id = ?1;
