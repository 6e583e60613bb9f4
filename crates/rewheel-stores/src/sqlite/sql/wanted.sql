-- wanted: reads what operators want of the jobs of holder ?1.
SELECT id, fence, wanted FROM jobs INDEXED BY jobs_wanted WHERE holder = ?1 AND wanted IS NOT NULL LIMIT ?2;
