-- insert: one new job. Contract: SubmitStore::insert.
-- holder, leased_ms and overdue_ms are set on the direct path only.
INSERT INTO jobs (id, lane, state, due_ms, because, fence, version, attempt, attempts_before, takeovers, takeovers_counted,
                  holder, leased_ms, overdue_ms, created_ms, deadline_ms, attempts_max, attempt_timeout_ms, backoff,
                  key, shard_key, traceparent, payload)
VALUES (?1, ?2, ?3, ?4, 'submitted', ?5, 1, 0, 0, 0, 0,
        ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
        ?14, ?15, ?16, ?17);
