-- take_over: frees a job. The fence grows, because the previous holder may still believe that it has the job.
UPDATE rewheel_jobs FORCE INDEX (PRIMARY)
   SET state = ?, fence = fence + 1, version = version + 1, takeovers = ?, takeovers_counted = ?,
       holder = 0, claim = 0, leased_ms = 0, overdue_ms = 0, wanted = 0, started_fence = 0, lane = ?, place = ?
 WHERE lane = ? AND place = ? AND state = 1 AND holder = ? AND fence = ?;
