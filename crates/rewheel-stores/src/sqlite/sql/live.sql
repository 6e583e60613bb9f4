-- live: reads the live jobs among ?1. Contract: ReadStore::live.
SELECT {live_job_without_payload} FROM jobs LEFT JOIN holders ON holders.seq = jobs.holder WHERE jobs.id IN rarray(?1);
