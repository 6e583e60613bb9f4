-- find_budget: reads and locks the retry budget of a kind.
SELECT balance, counted_ms FROM rewheel_budgets WHERE kind = ? FOR UPDATE
