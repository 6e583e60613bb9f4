-- redrive: stores dead letter ?1 in the hot table, due at ?2, with deadline ?3, state ?4 and its history. The caller deletes it from the dead
-- letters.
INSERT INTO jobs ({moved}, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                  settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message)
SELECT {moved}, ?4, ?2, 'person', fence, version + 1, attempt, attempt, takeovers, takeovers_counted,
       settled_by, settled_fence, ?3, failure_category, failure_code, failure_message
  FROM dead WHERE id = ?1;
