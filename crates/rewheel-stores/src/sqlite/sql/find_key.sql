-- find_key: reads the job that has a key, if the key has not expired at ?4.
SELECT job, payload_hash, state FROM keys
 WHERE kind = ?1 AND tenant = ?2 AND key = ?3 AND (expires_ms IS NULL OR expires_ms > ?4);
