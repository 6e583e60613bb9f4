-- reserve_lock: serializes reservations for tenant $1. Contract: SubmitStore::reserve. The lock ends with the transaction. Two tenants
-- with the same hash only wait for each other.
SELECT pg_advisory_xact_lock('rewheel.reserved'::regclass::oid::integer, hashtext($1));
