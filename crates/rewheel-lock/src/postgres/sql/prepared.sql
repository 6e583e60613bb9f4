-- prepared: returns whether the tables exist. Then a user without the right to create them can use the locks.
SELECT to_regclass('rewheel.locks') IS NOT NULL AND to_regclass('rewheel.lock_floor') IS NOT NULL;
