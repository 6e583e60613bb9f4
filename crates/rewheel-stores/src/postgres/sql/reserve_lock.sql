-- reserve_lock: serves those who ask for tenant $1 one after the other. Contract: SubmitStore::reserve. The lock ends with the
-- transaction; two tenants that share one by chance only wait for each other.
SELECT pg_advisory_xact_lock('rewheel.reserved'::regclass::oid::integer, hashtext($1));
