-- lock_timeout: how long this transaction waits for a lock, and everybody else behind it.
SELECT set_config('lock_timeout', '1s', true);
