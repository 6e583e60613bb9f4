-- insert: stores one new job, or several where the tuple is repeated. Contract: SubmitStore::insert. holder, leased_ms and overdue_ms are
-- set on the direct path only. A job whose id exists fails the whole flush, which is then rolled back as one; so SQLite need not track
-- how to undo this statement alone.
INSERT OR FAIL INTO jobs ({submitted}, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                          takeovers_counted, holder, leased_ms, overdue_ms, created_ms, deadline_ms)
VALUES ({submitted_values}, ?, ?, 'submitted', ?, 1, ?, ?, 0, 0, ?, ?, ?, ?, ?)
