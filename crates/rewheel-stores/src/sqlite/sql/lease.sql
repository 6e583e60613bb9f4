-- lease: leases jobs ?1, which were just found, to holder ?2, now ?3. Contract: WorkStore::claim. ?4 is the attempt timeout of jobs
-- without their own, ?5 the grace, ?6 the longest attempt timeout that counts. `OR FAIL`: the update cannot fail, and SQLite need not keep data to undo it. `min`: a sum beyond the
-- largest integer, 9223372036854775807, would be a REAL, which the column rejects.
UPDATE OR FAIL jobs
   SET state = 'leased', holder = ?2, leased_ms = ?3, fence = fence + 1, version = version + 1,
       overdue_ms = max(due_ms, ?3)
                  + min(9223372036854775807 - max(due_ms, ?3), coalesce(min(attempt_timeout_ms, ?6), ?4) + ?5)
 WHERE seq IN rarray(?1);
