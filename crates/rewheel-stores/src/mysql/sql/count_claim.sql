-- count_claim: jobs of a claim are not leased under it any more.
UPDATE rewheel_claims SET jobs_left = jobs_left - ? WHERE seq = ?;
