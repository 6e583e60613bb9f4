-- claim: leases at most ?4 jobs of lane ?1 that are due until ?2 to holder ?3, now ?5. Contract: WorkStore::claim.
-- ?6 is the attempt timeout of jobs without their own, ?7 the grace.
UPDATE OR FAIL jobs      -- no constraint can fail here: nothing needs to be kept to undo it
   SET state = 'leased', holder = ?3, leased_ms = ?5, fence = fence + 1, version = version + 1,
       overdue_ms = max(due_ms, ?5) + coalesce(attempt_timeout_ms, ?6) + ?7
 WHERE seq IN (SELECT seq FROM jobs INDEXED BY jobs_due      -- one range, whatever the statistics say
                WHERE state = 'scheduled' AND lane = ?1 AND due_ms <= ?2
                  AND (deadline_ms IS NULL OR deadline_ms > ?5)   -- the deadline sweep ends those
                ORDER BY due_ms, seq
                LIMIT ?4)
RETURNING seq, id, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted, overdue_ms,
          created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff, key, shard_key, traceparent,
          failure_category, failure_code, failure_message, payload;
