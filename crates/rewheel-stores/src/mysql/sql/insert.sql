-- insert: stores new jobs. Contract: SubmitStore::insert. holder, claim, leased_ms and overdue_ms are set on the direct path only.
INSERT INTO rewheel_jobs ({submitted}, lane, place, state, due_ms, because, fence, version, attempt, attempts_before, takeovers,
                          takeovers_counted, holder, claim, leased_ms, overdue_ms, created_ms, deadline_ms)
VALUES {rows}({submitted_values}, ?, ?, ?, ?, 'submitted', ?, 1, ?, ?, 0, 0, ?, ?, ?, ?, ?, ?)
