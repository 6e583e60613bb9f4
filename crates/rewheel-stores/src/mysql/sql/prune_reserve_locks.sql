-- prune_reserve_locks: finds the rows that reservations lock, of tenants without reservations. Contract: OperateStore::prune.
SELECT locked.tenant, locked.holder FROM rewheel_reserved AS locked
 WHERE locked.holder = 0 AND NOT EXISTS (SELECT 1 FROM rewheel_reserved AS reserved WHERE reserved.tenant = locked.tenant AND reserved.holder > 0)
