-- insert_result: stores results of jobs that succeeded. Contract: WorkStore::settle.
-- A job may be submitted again under its id after it was pruned.
REPLACE INTO rewheel_results (job, expires_ms, content_type, dropped, body) VALUES {rows}(?, ?, ?, ?, ?)
