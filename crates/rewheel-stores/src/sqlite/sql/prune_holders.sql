-- prune_holders: holders that died at ?1 or before, and whose jobs were all swept. Contract: OperateStore::prune.
DELETE FROM holders WHERE seq IN (
    SELECT seq FROM holders
     WHERE died_ms <= ?1
       AND NOT EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_held WHERE state = 'leased' AND holder = holders.seq)
     ORDER BY seq LIMIT ?2);
