-- end_dead: stores a live job as a dead letter. The caller deletes it from the hot table. A job that is taken from its holder gets a larger
-- fence, as in any takeover.
INSERT INTO rewheel_dead ({moved}, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                          settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message, ended_ms)
SELECT {moved}, ABS(lane), 'dead', due_ms, because, fence + IF(state = 1 AND ? IS NULL, 1, 0), version + 1, ?, attempts_before, ?, ?,
       COALESCE(?, settled_by), IF(? IS NULL, settled_fence, fence), deadline_ms, ?, ?, ?, ?
  FROM rewheel_jobs FORCE INDEX (PRIMARY) WHERE lane = ? AND place = ?;
