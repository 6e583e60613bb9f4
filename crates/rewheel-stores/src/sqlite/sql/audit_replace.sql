-- audit_replace: appends to the audit log that submit ?6 replaced job ?3.
INSERT INTO audit (at_ms, who, what, job, kind, before, after, submit) VALUES (?1, ?2, 'replace', ?3, ?4, ?5, ?7, ?6);
