-- redrive: stores a dead letter in the hot table, with its history. The caller deletes it from the dead letters.
INSERT INTO rewheel_jobs ({moved}, lane, place, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                          settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message)
SELECT {moved}, ?, ?, ?, ?, 'person', fence, version + 1, attempt, attempt, takeovers, takeovers_counted,
       settled_by, settled_fence, ?, failure_category, failure_code, failure_message
  FROM rewheel_dead WHERE id = ?;
