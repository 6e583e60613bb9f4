-- result: reads the result of a job, and whether the job is still kept. Contract: ReadStore::result.
SELECT content_type, dropped, body, EXISTS (SELECT 1 FROM rewheel_finished AS finished WHERE finished.id = results.job)
  FROM rewheel_results AS results WHERE job = ?
