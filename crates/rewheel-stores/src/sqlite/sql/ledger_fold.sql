-- ledger_fold: makes room for the one line that replaces those up to ?1.
DELETE FROM ledger WHERE seq <= ?1;
