-- settle_payload: replaces the payloads of jobs that are settled, and locked, in this transaction. Contract: WorkStore::settle.
UPDATE rewheel.jobs SET payload = given.payload FROM unnest($1::uuid[], $2::bytea[]) AS given (id, payload) WHERE jobs.id = given.id;
