-- duplicates_undo: gives up the locks on jobs and keys since `duplicates_begin`.
ROLLBACK TO SAVEPOINT duplicates;
