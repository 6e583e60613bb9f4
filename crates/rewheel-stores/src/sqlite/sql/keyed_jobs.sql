-- keyed_jobs: reads the jobs that key ?1 belongs to at ?2, at most ?5: of kind ?3 and tenant ?4, unless those are NULL. One index probe
-- for each kind and tenant. Contract: ReadStore::list.
SELECT keys.job
  FROM (SELECT DISTINCT kind, tenant FROM lanes
         WHERE (?3 IS NULL OR kind = ?3) AND (?4 IS NULL OR tenant = ?4) LIMIT ?5) AS named
  JOIN keys ON keys.kind = named.kind AND keys.tenant = named.tenant AND keys.key = ?1
 WHERE keys.expires_ms IS NULL OR keys.expires_ms > ?2;
