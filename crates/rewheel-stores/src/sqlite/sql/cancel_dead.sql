-- cancel_dead: stores dead letter ?1 as cancelled, now ?2, kept until ?3. The caller deletes it from the dead letters.
INSERT INTO finished ({moved}, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                      settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message,
                      ended_ms, expires_ms)
SELECT {moved}, 'cancelled', due_ms, because, fence, version + 1, attempt, attempts_before, takeovers, takeovers_counted,
       settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message,
       ?2, ?3
  FROM dead WHERE id = ?1;
