-- expire_holder: expires holder $2 if it has not renewed since renewal $3 and its lease has expired; holder $1 must be alive. A transaction that
-- leases jobs to holder $2 has locked its row and finishes first; the lock timeout is short. Contract: LeaseStore::expire_holder.
WITH clock AS MATERIALIZED (SELECT rewheel.now_ms() + $4 AS now),
buried AS MATERIALIZED (
    SELECT holders.seq FROM rewheel.holders, clock
     WHERE id = $2 AND died_ms IS NULL AND renewals = $3 AND rewheel.later(renewed_ms, lease_ttl_ms) <= now
       AND EXISTS (SELECT FROM rewheel.holders AS living WHERE living.id = $1 AND living.died_ms IS NULL)
       FOR UPDATE OF holders
),
done AS (
    UPDATE rewheel.holders SET died_ms = now FROM buried, clock WHERE holders.seq = buried.seq RETURNING 1
)
SELECT EXISTS (SELECT FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL) AS by_lives,
       EXISTS (SELECT FROM done) AS buried,
       EXISTS (SELECT FROM rewheel.holders WHERE id = $2 AND died_ms IS NULL) AS lived;
