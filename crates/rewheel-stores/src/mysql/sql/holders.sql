-- holders: reads all holders that are alive or died recently. Contract: LeaseStore::holders.
SELECT holders.id, name, lease_ttl_ms, COALESCE(renewals, 0), joined_ms, COALESCE(renewed_ms, joined_ms), died_ms, role, owner, format
  FROM rewheel_holders AS holders LEFT JOIN rewheel_renewals AS renewals ON renewals.id = holders.id
 ORDER BY seq;
