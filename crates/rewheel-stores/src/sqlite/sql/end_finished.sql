-- end_finished: stores a live job as finished with state ?2, kept until ?10. The caller deletes it from the hot table. A job that
-- is taken from its holder gets a larger fence, as in any takeover.
INSERT INTO finished ({moved}, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                      settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message,
                      ended_ms, expires_ms)
SELECT {moved}, ?2, due_ms, because, fence + (state = 'leased' AND ?5 IS NULL), version + 1, ?3, attempts_before, ?4, ?11,
       coalesce(?5, settled_by), CASE WHEN ?5 IS NULL THEN settled_fence ELSE fence END,
       deadline_ms, coalesce(?6, failure_category), CASE WHEN ?6 IS NULL THEN failure_code ELSE ?7 END, coalesce(?8, failure_message),
       ?9, ?10
  FROM jobs WHERE seq = ?1;
