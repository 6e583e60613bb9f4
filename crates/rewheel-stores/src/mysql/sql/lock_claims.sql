-- lock_claims: locks claims that may be written. Passes over those that are being changed: the next sweep finds them.
SELECT seq, jobs_left, jobs FROM rewheel_claims FORCE INDEX (PRIMARY) WHERE seq IN ({list}) FOR UPDATE SKIP LOCKED;
