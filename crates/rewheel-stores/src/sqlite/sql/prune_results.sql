-- prune_results: deletes at most ?2 results whose retention has ended at ?1, and remembers until ?3 that they existed.
UPDATE results SET content_type = NULL, dropped = NULL, body = NULL, expires_ms = ?3
 WHERE rowid IN (SELECT rowid FROM results INDEXED BY results_expires
                  WHERE expires_ms <= ?1 AND coalesce(content_type, dropped) IS NOT NULL LIMIT ?2);
