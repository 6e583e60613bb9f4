-- claim_limited_start: records that a job was started at ?3 under the limit of ?1 (`kind` or `tenant`) named ?2. Contract:
-- WorkStore::claim_limited.
INSERT INTO limits (scope, name, last_ms) VALUES (?1, ?2, ?3)
ON CONFLICT (scope, name) DO UPDATE SET last_ms = excluded.last_ms;
