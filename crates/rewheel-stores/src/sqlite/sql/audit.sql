-- audit: reads the audit log before ?1, newest first. Contract: ReadStore::audit.
SELECT seq, at_ms, who, what, job, kind, before, after FROM audit WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2;
