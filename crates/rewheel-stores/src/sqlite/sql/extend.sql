-- extend: extends the time of job ?1 of holder ?2 under fence ?3. Contract: WorkStore::extend. ?4 is the end of the attempt by its new
-- timeout, ?5 the maximum total time, ?6 the grace.
UPDATE jobs SET overdue_ms = max(overdue_ms, min(?4, leased_ms + ?5) + ?6)
 WHERE id = ?1 AND state = 'leased' AND +holder = ?2 AND fence = ?3
RETURNING overdue_ms;
