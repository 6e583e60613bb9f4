-- extend_find: reads and locks the times of a leased job. Contract: WorkStore::extend.
SELECT leased_ms, overdue_ms FROM rewheel_jobs FORCE INDEX (id) WHERE id = ? AND state = 1 AND holder = ? AND fence = ? FOR UPDATE;
