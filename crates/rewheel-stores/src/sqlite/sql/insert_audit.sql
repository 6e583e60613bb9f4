-- insert_audit: appends one entry to the audit log.
INSERT INTO audit (at_ms, who, what, job, kind, before, after) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);
