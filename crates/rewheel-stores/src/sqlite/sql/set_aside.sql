-- set_aside: pauses job ?1, which cannot be read, until an operator resumes it. The rest of the row stays unchanged: a newer Rewheel may
-- be able to read it. The fence grows, because the previous holder may still settle under the old one.
UPDATE jobs SET state = 'paused', holder = NULL, leased_ms = NULL, overdue_ms = NULL, started_fence = NULL, fence = fence + 1,
                version = version + 1
 WHERE id = ?1;
