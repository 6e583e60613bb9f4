-- lease: hands a job that was just found to holder ?2, now ?3, until ?4. Contract: WorkStore::claim.
UPDATE jobs
   SET state = 'leased', holder = ?2, leased_ms = ?3, overdue_ms = ?4, fence = fence + 1, version = version + 1
 WHERE seq = ?1;
