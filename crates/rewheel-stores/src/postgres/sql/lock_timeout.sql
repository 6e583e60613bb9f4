-- lock_timeout: limits how long this transaction, and all others behind it, wait for a lock.
SELECT set_config('lock_timeout', '1s', true);
