-- audit: reads the audit log before an entry, newest first. Contract: ReadStore::audit.
SELECT seq, at_ms, who, what, job, kind, `before`, `after` FROM rewheel_audit WHERE seq < ? ORDER BY seq DESC LIMIT ?
