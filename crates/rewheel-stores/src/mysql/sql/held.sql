-- held: reads which of the given jobs a holder has had for long enough. Contract: WorkStore::held.
SELECT id, fence FROM rewheel_jobs FORCE INDEX (id) WHERE id IN ({list}) AND state = 1 AND holder = ? AND leased_ms <= ?;
