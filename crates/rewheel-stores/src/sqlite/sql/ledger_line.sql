-- ledger_line: writes the line that replaces others, with the number of the last of them.
INSERT INTO ledger (seq, at_ms, submitted, pruned) VALUES (?1, ?2, ?3, ?4);
