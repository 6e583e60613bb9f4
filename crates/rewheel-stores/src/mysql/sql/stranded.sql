-- stranded: reads which of the given jobs are leased, and their claim does not exist: no sweep finds them. Contract: Store::risks.
SELECT jobs.id FROM rewheel_jobs jobs FORCE INDEX (id) LEFT JOIN rewheel_claims claims ON claims.seq = jobs.claim
 WHERE jobs.id IN ({list}) AND jobs.state = 1 AND claims.seq IS NULL;
