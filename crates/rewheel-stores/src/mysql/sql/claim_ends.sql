-- claim_ends: takes notes of jobs that users' transactions ended. Passes over those of open transactions.
SELECT seq, claim, jobs FROM rewheel_claim_ends FORCE INDEX (PRIMARY) ORDER BY seq LIMIT ? FOR UPDATE SKIP LOCKED;
