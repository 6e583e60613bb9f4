-- duplicates_end: keeps what was written since `duplicates_begin`.
RELEASE SAVEPOINT duplicates;
