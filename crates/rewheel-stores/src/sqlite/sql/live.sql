-- live: reads the live jobs among ?1. Contract: ReadStore::live.
SELECT jobs.*, holders.id AS holder_id FROM jobs LEFT JOIN holders ON holders.seq = jobs.holder WHERE jobs.id IN rarray(?1);
