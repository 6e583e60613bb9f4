-- insert_ledger: appends how many jobs one flush added and removed.
INSERT INTO ledger (at_ms, submitted, pruned) VALUES (?1, ?2, ?3);
