-- settle_keep: stores jobs of a lane as succeeded. The caller has locked them, and deletes them from the hot table. The last parameter but
-- one is a JSON list of [place, how long ago the attempt started, how long it took].
INSERT INTO rewheel_finished
      ({moved}, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
       settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message, ended_ms, expires_ms,
       ran_by, started_ms, duration_ms, success_code)
SELECT {moved}, ABS(jobs.lane), 'succeeded', due_ms, because, fence, version + 1, attempt + 1, attempts_before, takeovers, takeovers_counted,
       holder, fence, deadline_ms, failure_category, failure_code, failure_message, ?, ?,
       ?, ? - given.ago_ms, given.took_ms, ?
  FROM JSON_TABLE(?, '$[*]' COLUMNS (place BIGINT PATH '$[0]', ago_ms BIGINT PATH '$[1]', took_ms BIGINT PATH '$[2]')) AS given
       STRAIGHT_JOIN rewheel_jobs jobs FORCE INDEX (PRIMARY) ON jobs.lane = ? AND jobs.place = given.place;
