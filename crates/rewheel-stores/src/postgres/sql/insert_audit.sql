-- insert_audit: one line of the audit log.
INSERT INTO rewheel.audit (at_ms, who, what, job, kind, before, after) VALUES ($1, $2, $3, $4, $5, $6, $7);
