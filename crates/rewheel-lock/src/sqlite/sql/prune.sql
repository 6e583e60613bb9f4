-- prune: deletes the locks that are free since ?1, after `raise_floor` in the same transaction.
DELETE FROM rewheel_locks WHERE until_ms < ?1;
