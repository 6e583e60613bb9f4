-- holding: reads all holders that have jobs, and whether they are alive.
SELECT DISTINCT claims.holder, holders.id, holders.id IS NOT NULL AND holders.died_ms IS NULL
  FROM rewheel_claims claims LEFT JOIN rewheel_holders holders ON holders.seq = claims.holder;
