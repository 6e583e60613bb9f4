-- take_over: a job is free again, as ?2. The larger fence is for a holder that still believes it has it.
UPDATE jobs
   SET state = ?2, fence = fence + 1, version = version + 1, takeovers = ?3, takeovers_counted = ?4,
       holder = NULL, leased_ms = NULL, overdue_ms = NULL, wanted = NULL, started_fence = NULL
 WHERE seq = ?1;
