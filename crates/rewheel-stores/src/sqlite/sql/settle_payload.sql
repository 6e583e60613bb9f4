-- settle_payload: replaces the payload of a job that is settled in this transaction. Contract: WorkStore::settle.
UPDATE jobs SET payload = ?2 WHERE seq = ?1;
