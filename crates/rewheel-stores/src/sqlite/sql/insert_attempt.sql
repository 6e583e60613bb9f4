-- insert_attempt: stores the record of a failed attempt.
INSERT INTO attempts (job, attempt, fence, holder, started_ms, duration_ms, category, code, message, decision, delay_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);
