-- keep_lease: keeps a sticky retry with its holder ?2, under a new fence. Contract: WorkStore::settle.
UPDATE jobs
   SET fence = fence + 1, version = version + 1, attempt = ?3, due_ms = ?4, because = ?5, leased_ms = ?6, overdue_ms = ?7,
       settled_by = ?2, settled_fence = fence, settled_kept = 1,
       failure_category = coalesce(?8, failure_category),
       failure_code = CASE WHEN ?8 IS NULL THEN failure_code ELSE ?9 END,
       failure_message = coalesce(?10, failure_message)
 WHERE seq = ?1;
