-- get_live: reads one live job. Contract: ReadStore::get.
SELECT jobs.*, holders.id AS holder_id FROM jobs LEFT JOIN holders ON holders.seq = jobs.holder WHERE jobs.id = ?1;
