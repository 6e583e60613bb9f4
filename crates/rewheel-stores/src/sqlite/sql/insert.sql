-- insert: one new job, or several where the tuple is repeated. Contract: SubmitStore::insert.
-- holder, leased_ms and overdue_ms are set on the direct path only. A job that exists fails the whole flush, which is
-- rolled back as one: there is no need to remember how to undo a part of it.
INSERT OR FAIL INTO jobs (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                          takeovers_counted, holder, leased_ms, overdue_ms, created_ms, deadline_ms, attempts_max,
                          attempt_timeout_ms, backoff, key, shard_key, traceparent, payload)
VALUES (?, ?, ?, ?, 'submitted', ?, 1, 0, 0, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
