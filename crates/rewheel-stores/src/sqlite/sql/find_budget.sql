-- find_budget: reads the retry budget of kind ?1.
SELECT balance, counted_ms FROM budgets WHERE kind = ?1;
