-- insert_attempt: stores the record of a failed attempt.
INSERT INTO rewheel_attempts (job, attempt, fence, holder, started_ms, duration_ms, category, code, message, decision, delay_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
