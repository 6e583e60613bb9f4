-- claim_overdue: reads and locks when given jobs are overdue, with their claims. Passes over those that are being changed: their times are not
-- committed yet.
SELECT claim, overdue_ms FROM rewheel_jobs FORCE INDEX (id) WHERE id IN ({list}) AND state = 1 FOR UPDATE SKIP LOCKED;
