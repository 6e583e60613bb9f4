-- insert_ledger: what one flush took in and let go of.
INSERT INTO rewheel.ledger (at_ms, submitted, pruned) VALUES ($1, $2, $3);
