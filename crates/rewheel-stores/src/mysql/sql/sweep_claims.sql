-- sweep_claims: reads claims of a holder that may have overdue jobs, after a claim; for a dead holder all of them.
SELECT overdue_ms, seq, jobs FROM rewheel_claims FORCE INDEX (holder)
 WHERE holder = ? AND overdue_ms <= ? AND (overdue_ms > ? OR (overdue_ms = ? AND seq > ?)) ORDER BY overdue_ms, seq LIMIT ?;
