-- get_live: reads one live job. Contract: ReadStore::get.
SELECT {live_job} FROM jobs LEFT JOIN holders ON holders.seq = jobs.holder WHERE jobs.id = ?1;
