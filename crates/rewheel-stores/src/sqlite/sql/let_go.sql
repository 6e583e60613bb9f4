-- let_go: releases a job, which stays live with state ?2. Contract: WorkStore::settle, give_back.
UPDATE jobs
   SET state = ?2, version = version + 1, attempt = ?3, due_ms = coalesce(?4, due_ms), because = coalesce(?5, because),
       holder = NULL, leased_ms = NULL, overdue_ms = NULL, wanted = NULL, started_fence = NULL,
       settled_by = ?6, settled_fence = fence, settled_kept = NULL,
       failure_category = coalesce(?7, failure_category),
       failure_code = CASE WHEN ?7 IS NULL THEN failure_code ELSE ?8 END,
       failure_message = coalesce(?9, failure_message)
 WHERE seq = ?1;
