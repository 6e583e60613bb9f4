-- settle_keep: stores jobs ?1 as succeeded, kept until ?4; settled by ?2, now ?3. The caller deletes them from the hot table. Their
-- attempts were run by ?5 with the code ?7. ?6 is one text with two numbers of 13 digits for each job: how long ago its attempt
-- started, and how long it took. An array of each would have to be searched for each job.
INSERT OR FAIL INTO finished
      ({moved}, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
       settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message, ended_ms, expires_ms,
       ran_by, started_ms, duration_ms, success_code)
SELECT {moved}, 'succeeded', due_ms, because, fence, version + 1, attempt + 1, attempts_before, takeovers, takeovers_counted,
       ?2, fence, deadline_ms, failure_category, failure_code, failure_message, ?3, ?4,
       ?5, ?3 - CAST(substr(?6, given.rowid * 26 - 25, 13) AS INTEGER), CAST(substr(?6, given.rowid * 26 - 12, 13) AS INTEGER), ?7
  FROM rarray(?1) AS given CROSS JOIN jobs ON jobs.seq = given.value;
