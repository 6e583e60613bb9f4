-- holder: reads one holder. Contract: LeaseStore::holder.
SELECT id, name, lease_ttl_ms, renewals, joined_ms, renewed_ms, died_ms, role, owner, format FROM rewheel_holders WHERE id = ?;
