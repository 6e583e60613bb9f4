-- reserve_keep: reserves room for $3 jobs of tenant $1 for holder $2. Contract: SubmitStore::reserve.
INSERT INTO rewheel.reserved (tenant, holder, jobs) VALUES ($1, $2, $3);
