-- ledger_fold: deletes the lines up to ?1, which one line replaces.
DELETE FROM ledger WHERE seq <= ?1;
