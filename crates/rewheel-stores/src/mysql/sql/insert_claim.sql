-- insert_claim: records which jobs of a lane were leased to a holder. Contract: WorkStore::claim.
INSERT INTO rewheel_claims (holder, lane, leased_ms, overdue_ms, jobs_left, jobs) VALUES (?, ?, ?, ?, ?, ?);
