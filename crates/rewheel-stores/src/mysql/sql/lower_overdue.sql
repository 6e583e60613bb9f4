-- lower_overdue: a job of a claim is overdue at this time.
UPDATE rewheel_claims SET overdue_ms = LEAST(overdue_ms, ?) WHERE seq = ?;
