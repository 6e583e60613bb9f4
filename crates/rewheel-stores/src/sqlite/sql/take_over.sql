-- take_over: frees a job, which gets state ?2. The fence grows, because the previous holder may still believe that it has the job.
UPDATE jobs
   SET state = ?2, fence = fence + 1, version = version + 1, takeovers = ?3, takeovers_counted = ?4,
       holder = NULL, leased_ms = NULL, overdue_ms = NULL, wanted = NULL, started_fence = NULL
 WHERE seq = ?1;
