-- end_key: stores the final state of a job in its key. The key is matched with its job: another job may have the key by now.
UPDATE keys SET state = ?5, expires_ms = ?6 WHERE kind = ?1 AND tenant = ?2 AND key = ?3 AND job = ?4;
