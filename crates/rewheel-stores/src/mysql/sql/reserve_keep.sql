-- reserve_keep: reserves room for jobs of a tenant for a holder. Contract: SubmitStore::reserve.
INSERT INTO rewheel_reserved (tenant, holder, jobs) VALUES (?, ?, ?)
