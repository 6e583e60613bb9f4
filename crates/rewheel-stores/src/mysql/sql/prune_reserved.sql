-- prune_reserved: finds reservations of deleted holders. There are few: each new reservation for a tenant deletes those of dead holders.
-- Contract: OperateStore::prune.
SELECT reserved.tenant, reserved.holder
  FROM rewheel_reserved AS reserved LEFT JOIN rewheel_holders AS holders ON holders.seq = reserved.holder
 WHERE reserved.holder <> 0 AND holders.seq IS NULL
