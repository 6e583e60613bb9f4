-- end_key: the job of a key has ended for good. The job is named too: another may have the key by now.
UPDATE keys SET state = ?5, expires_ms = ?6 WHERE kind = ?1 AND tenant = ?2 AND key = ?3 AND job = ?4;
