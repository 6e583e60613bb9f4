-- duplicates_begin: marks where a transaction returns to if another one was faster with a key.
SAVEPOINT duplicates;
