-- insert_result: stores the result of job ?1, which succeeded, until ?2. Contract: WorkStore::settle.
-- A job may be submitted again under its id after it was pruned.
INSERT OR REPLACE INTO results (job, expires_ms, content_type, dropped, body) VALUES (?1, ?2, ?3, ?4, ?5);
