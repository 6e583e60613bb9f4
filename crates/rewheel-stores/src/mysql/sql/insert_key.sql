-- insert_key: takes a key for a job. If another transaction does the same, this one is repeated.
INSERT INTO rewheel_keys (name, job, payload_hash) VALUES {rows}(?, ?, ?)
