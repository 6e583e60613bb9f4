-- set_aside: pauses a job that cannot be read, until an operator resumes it. The rest of the row stays unchanged: a newer Rewheel may be
-- able to read it. The fence grows, because the previous holder may still settle under the old one.
UPDATE rewheel_jobs FORCE INDEX (id)
   SET lane = -ABS(lane), place = ?, state = 2, holder = 0, claim = 0, leased_ms = 0, overdue_ms = 0, started_fence = 0, fence = fence + 1, version = version + 1
 WHERE id = ?;
