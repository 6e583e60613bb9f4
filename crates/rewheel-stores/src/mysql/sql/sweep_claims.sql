-- sweep_claims: reads claims of a holder that may have overdue jobs; for a dead holder all of them.
SELECT seq, jobs FROM rewheel_claims FORCE INDEX (holder) WHERE holder = ? AND overdue_ms <= ? ORDER BY overdue_ms LIMIT ? OFFSET ?;
