-- end_dead: stores a live job as a dead letter. The caller deletes it from the hot table. A job that is taken from its holder
-- gets a larger fence, as in any takeover.
INSERT INTO dead ({moved}, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                  settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message, ended_ms)
SELECT {moved}, 'dead', due_ms, because, fence + (state = 'leased' AND ?5 IS NULL), version + 1, ?2, attempts_before, ?3, ?4,
       coalesce(?5, settled_by), CASE WHEN ?5 IS NULL THEN settled_fence ELSE fence END,
       deadline_ms, ?6, ?7, ?8, ?9
  FROM jobs WHERE seq = ?1;
