-- extend: writes when a leased job is overdue. Contract: WorkStore::extend.
UPDATE rewheel_jobs FORCE INDEX (id) SET overdue_ms = ? WHERE id = ?;
