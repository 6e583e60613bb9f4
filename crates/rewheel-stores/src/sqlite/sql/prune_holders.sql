-- prune_holders: deletes at most ?2 holders that died at ?1 or earlier. Contract: OperateStore::prune.
DELETE FROM holders WHERE seq IN (SELECT seq FROM holders WHERE died_ms <= ?1 ORDER BY seq LIMIT ?2);
