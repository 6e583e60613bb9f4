-- claim_limited_start: records that a job was started under a limit. Contract: WorkStore::claim_limited.
UPDATE rewheel_limits SET last_ms = ? WHERE scope = ? AND name = ?;
