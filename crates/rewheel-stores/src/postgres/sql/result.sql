-- result: reads the result of a job, and whether the job is still kept. Contract: ReadStore::result.
SELECT content_type, dropped, body, EXISTS (SELECT FROM rewheel.finished WHERE finished.id = results.job)
  FROM rewheel.results WHERE job = $1;
