-- reserve_drop: what holder ?2 and the dead have set aside for tenant ?1. Contract: SubmitStore::reserve.
DELETE FROM reserved
 WHERE tenant = ?1 AND (holder = ?2 OR holder NOT IN (SELECT seq FROM holders WHERE died_ms IS NULL));
