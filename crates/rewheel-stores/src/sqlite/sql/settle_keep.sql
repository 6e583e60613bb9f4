-- settle_keep: stores jobs ?1 as succeeded, kept until ?4; settled by ?2, now ?3. The caller deletes them from the hot table.
INSERT OR FAIL INTO finished
      ({moved}, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
       settled_by, settled_fence, deadline_ms, failure_category, failure_code, failure_message, ended_ms, expires_ms)
SELECT {moved}, 'succeeded', due_ms, because, fence, version + 1, attempt + 1, attempts_before, takeovers, takeovers_counted,
       ?2, fence, deadline_ms, failure_category, failure_code, failure_message, ?3, ?4
  FROM jobs WHERE seq IN rarray(?1);
