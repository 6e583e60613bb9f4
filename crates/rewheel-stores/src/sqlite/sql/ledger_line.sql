-- ledger_line: the one line that replaces others, in the place of the last of them.
INSERT INTO ledger (seq, at_ms, submitted, pruned) VALUES (?1, ?2, ?3, ?4);
