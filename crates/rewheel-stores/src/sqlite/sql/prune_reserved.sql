-- prune_reserved: deletes reservations of deleted holders. There are few: each new reservation for a tenant deletes those of dead
-- holders. Contract: OperateStore::prune.
DELETE FROM reserved WHERE holder NOT IN (SELECT seq FROM holders);
