-- set_overdue: writes when the first job of a claim is overdue.
UPDATE rewheel_claims SET overdue_ms = ? WHERE seq = ? AND overdue_ms < ?;
