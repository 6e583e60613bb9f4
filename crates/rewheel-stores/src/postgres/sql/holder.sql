-- holder: reads one holder. Contract: LeaseStore::holder.
SELECT rewheel.now_ms() + $1, id, name, lease_ttl_ms, renewals, joined_ms, renewed_ms, died_ms, role, owner, format
  FROM rewheel.holders WHERE id = $2;
