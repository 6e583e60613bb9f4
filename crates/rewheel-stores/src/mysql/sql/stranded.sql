-- stranded: reads leased jobs whose claim does not exist: no sweep finds them. Contract: Store::risks. Reads all live jobs.
SELECT jobs.id FROM rewheel_jobs jobs LEFT JOIN rewheel_claims claims ON claims.seq = jobs.claim
 WHERE jobs.state = 1 AND claims.seq IS NULL LIMIT 1000
