-- claim_overdue: reads when the first of given jobs are overdue, by claim.
SELECT claim, MIN(overdue_ms) FROM rewheel_jobs FORCE INDEX (id) WHERE id IN ({list}) AND state = 1 GROUP BY claim;
