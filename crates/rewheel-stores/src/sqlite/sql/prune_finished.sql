-- prune_finished: deletes at most ?2 finished jobs whose retention has ended at ?1. Contract: OperateStore::prune.
DELETE FROM finished WHERE seq IN (SELECT seq FROM finished INDEXED BY finished_expires WHERE expires_ms <= ?1 LIMIT ?2)
RETURNING id;
