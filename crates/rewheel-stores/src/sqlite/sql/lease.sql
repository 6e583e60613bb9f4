-- lease: hands jobs ?1 that were just found to holder ?2, now ?3. Contract: WorkStore::claim.
-- ?4 is the attempt timeout of jobs without their own, ?5 the grace. `OR FAIL`: nothing can, and nothing is kept to undo it.
-- `min`: a sum past the end of time would be a REAL, which no column takes; the end of time is 9223372036854775807.
UPDATE OR FAIL jobs
   SET state = 'leased', holder = ?2, leased_ms = ?3, fence = fence + 1, version = version + 1,
       overdue_ms = max(due_ms, ?3)
                  + min(9223372036854775807 - max(due_ms, ?3), coalesce(attempt_timeout_ms, ?4) + ?5)
 WHERE seq IN rarray(?1);
