-- lock_claims: locks claims whose times may be raised. Passes over those that are being changed: the next sweep finds them.
SELECT seq, jobs FROM rewheel_claims FORCE INDEX (PRIMARY) WHERE seq IN ({list}) FOR UPDATE SKIP LOCKED;
