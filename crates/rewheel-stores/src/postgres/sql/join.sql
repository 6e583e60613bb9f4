-- join: registers a holder. Contract: LeaseStore::join.
INSERT INTO rewheel.holders (id, name, role, owner, lease_ttl_ms, format, renewals, joined_ms, renewed_ms)
SELECT $1, $3, $5, $6, $4, $7, 0, now, now FROM (SELECT rewheel.now_ms() + $2 AS now OFFSET 0) AS clock
ON CONFLICT (id) DO NOTHING
RETURNING joined_ms;
