-- leased_claims: reads a page of live jobs with their claims, after a place in a lane. Contract: Store::risks.
SELECT lane, place, state, claim, id FROM rewheel_jobs FORCE INDEX (PRIMARY)
 WHERE lane > ? OR (lane = ? AND place > ?) ORDER BY lane, place LIMIT ?;
