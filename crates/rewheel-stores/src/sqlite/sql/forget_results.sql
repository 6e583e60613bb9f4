-- forget_results: deletes at most ?2 rows of results that were deleted long before ?1.
DELETE FROM results
 WHERE rowid IN (SELECT rowid FROM results INDEXED BY results_expires
                  WHERE expires_ms <= ?1 AND coalesce(content_type, dropped) IS NULL LIMIT ?2);
