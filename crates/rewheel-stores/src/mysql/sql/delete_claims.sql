-- delete_claims: deletes claims whose jobs have all ended.
DELETE FROM rewheel_claims WHERE seq IN ({list}) AND jobs_left <= 0;
