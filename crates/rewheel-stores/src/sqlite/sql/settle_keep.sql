-- settle_keep: stores jobs ?1 as succeeded, kept until ?4; settled by ?2, now ?3. The caller deletes them from the hot table.
INSERT OR FAIL INTO finished
      (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
       settled_by, settled_fence, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff,
       key, shard_key, traceparent, failure_category, failure_code, failure_message, ended_ms, expires_ms, payload)
SELECT id, lane, 'succeeded', due_ms, because, fence, version + 1, attempt + 1, attempts_before, takeovers, takeovers_counted,
       ?2, fence, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff,
       key, shard_key, traceparent, failure_category, failure_code, failure_message, ?3, ?4, payload
  FROM jobs WHERE seq IN rarray(?1);
