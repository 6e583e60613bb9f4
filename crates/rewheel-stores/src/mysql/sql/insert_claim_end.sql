-- insert_claim_end: notes jobs of a claim that a user's transaction ended.
INSERT INTO rewheel_claim_ends (claim, jobs) VALUES (?, ?);
