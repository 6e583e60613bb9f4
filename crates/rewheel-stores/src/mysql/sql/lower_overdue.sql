-- lower_overdue: a job of a claim is overdue at this time. Changes, and locks, nothing if another job of the claim is overdue earlier.
UPDATE rewheel_claims SET overdue_ms = ? WHERE seq = ? AND overdue_ms > ?;
