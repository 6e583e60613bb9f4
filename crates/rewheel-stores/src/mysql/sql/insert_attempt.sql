-- insert_attempt: stores records of failed attempts.
INSERT INTO rewheel_attempts (job, attempt, fence, holder, started_ms, duration_ms, category, code, message, decision, delay_ms)
VALUES {rows}(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
