-- insert_budget: creates the retry budget of a kind, if it does not exist, and locks it.
INSERT INTO rewheel_budgets (kind, balance, counted_ms) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE kind = VALUES(kind)
