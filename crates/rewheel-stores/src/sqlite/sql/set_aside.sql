-- set_aside: job ?1 cannot be read. It is paused until a person resumes it. Nothing else of the row changes: a newer Rewheel may be able
-- to read it. The larger fence is for a holder that had it.
UPDATE jobs SET state = 'paused', holder = NULL, leased_ms = NULL, overdue_ms = NULL, started_fence = NULL, fence = fence + 1,
                version = version + 1
 WHERE id = ?1;
