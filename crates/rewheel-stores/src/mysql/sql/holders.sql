-- holders: reads all holders that are alive or died recently. Contract: LeaseStore::holders.
SELECT id, name, lease_ttl_ms, renewals, joined_ms, renewed_ms, died_ms, role, owner, format FROM rewheel_holders ORDER BY seq;
