-- settle_payload: replaces the payload of a job that is settled in this transaction. Contract: WorkStore::settle.
UPDATE rewheel_jobs FORCE INDEX (PRIMARY) SET payload = ? WHERE lane = ? AND place = ?;
