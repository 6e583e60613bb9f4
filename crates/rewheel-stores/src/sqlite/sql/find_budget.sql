-- find_budget: the retries that a kind has earned. ?1 kind.
SELECT balance, counted_ms FROM budgets WHERE kind = ?1;
