-- bury: holder $2 dies, if it has not renewed since $3 and is silent; $1 must live. Whoever is leasing to it ends first: they
-- have locked its row, and are waited for, but not for long. Contract: LeaseStore::bury.
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
