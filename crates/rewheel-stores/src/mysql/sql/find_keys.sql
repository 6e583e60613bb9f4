-- find_keys: reads and locks keys by their hashes.
SELECT name, job, payload_hash, state, expires_ms FROM rewheel_keys FORCE INDEX (PRIMARY) WHERE name IN ({list}) FOR UPDATE;
