-- cancel_dead: stores a dead letter as cancelled. The caller deletes it from the dead letters.
INSERT INTO rewheel_finished ({moved}, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                              settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message, ended_ms, expires_ms)
SELECT {moved}, lane, 'cancelled', due_ms, because, fence, version + 1, attempt, attempts_before, takeovers, takeovers_counted,
       settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message, ?, ?
  FROM rewheel_dead WHERE id = ?;
