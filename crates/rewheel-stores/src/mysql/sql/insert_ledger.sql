-- insert_ledger: appends how many jobs one transaction added and removed.
INSERT INTO rewheel_ledger (at_ms, writer, submitted, pruned) VALUES (?, ?, ?, ?);
