-- aside_jobs: reads and locks those of the given jobs that are leased, except those that are being settled.
SELECT id, claim, lane, due_ms FROM rewheel_jobs FORCE INDEX (id) WHERE id IN ({list}) AND state = 1 FOR UPDATE SKIP LOCKED;
