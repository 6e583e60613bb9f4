-- claim_overdue: reads when the first jobs of claims are overdue.
SELECT claim, MIN(overdue_ms) FROM rewheel_jobs FORCE INDEX (id) WHERE id IN ({list}) AND state = 1 AND holder = ? GROUP BY claim;
