-- insert_deadlines: stores the deadlines of live jobs.
INSERT INTO rewheel_deadlines (deadline_ms, job) VALUES {rows}(?, ?)
