-- delete_claims: deletes claims whose jobs have all ended. With an index hint: the server would scan a small table, and wait for rows of
-- others.
DELETE claims FROM rewheel_claims claims FORCE INDEX (PRIMARY) WHERE claims.seq IN ({list}) AND claims.jobs_left <= 0;
