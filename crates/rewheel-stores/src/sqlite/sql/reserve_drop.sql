-- reserve_drop: deletes the reservations of holder ?2 and of dead holders for tenant ?1. Contract: SubmitStore::reserve.
DELETE FROM reserved
 WHERE tenant = ?1 AND (holder = ?2 OR holder NOT IN (SELECT seq FROM holders WHERE died_ms IS NULL));
