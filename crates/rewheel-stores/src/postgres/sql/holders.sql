-- holders: reads all holders that are alive or died recently. Contract: LeaseStore::holders.
SELECT rewheel.now_ms() + $1, id, name, lease_ttl_ms, renewals, joined_ms, renewed_ms, died_ms, role, owner, format
  FROM rewheel.holders ORDER BY seq;
