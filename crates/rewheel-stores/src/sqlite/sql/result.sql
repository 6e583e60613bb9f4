-- result: reads the result of a job, and whether the job is still kept. Contract: ReadStore::result.
SELECT content_type, dropped, body, EXISTS (SELECT 1 FROM finished WHERE finished.id = results.job) FROM results WHERE job = ?1;
