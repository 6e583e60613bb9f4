-- insert_audit: appends entries to the audit log.
INSERT INTO rewheel_audit (at_ms, who, what, job, kind, `before`, `after`) VALUES {rows}(?, ?, ?, ?, ?, ?, ?)
