-- audit_job: reads the audit log of a job before an entry, newest first. Contract: ReadStore::audit.
SELECT seq, at_ms, who, what, job, kind, `before`, `after` FROM rewheel_audit FORCE INDEX (job)
 WHERE job = ? AND seq < ? ORDER BY seq DESC LIMIT ?
