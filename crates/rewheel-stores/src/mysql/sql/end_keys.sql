-- end_keys: stores the final state of a job in its key. The key is matched with its job: another job may have the key by now.
UPDATE rewheel_keys SET state = ?, expires_ms = ? WHERE name = ? AND job = ?;
