-- join: registers a holder. Contract: LeaseStore::join.
INSERT INTO holders (id, name, role, owner, lease_ttl_ms, format, renewals, joined_ms, renewed_ms)
VALUES (?1, ?2, ?5, ?6, ?3, ?7, 0, ?4, ?4)
ON CONFLICT (id) DO NOTHING;
