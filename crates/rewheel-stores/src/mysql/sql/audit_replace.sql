-- audit_replace: appends to the audit log that a submit replaced a job.
INSERT INTO rewheel_audit (at_ms, who, what, job, kind, `before`, `after`, submit) VALUES (?, ?, 'replace', ?, ?, ?, ?, ?);
