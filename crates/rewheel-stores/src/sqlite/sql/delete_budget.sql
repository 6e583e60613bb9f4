-- delete_budget: the retries of a kind that is deleted. Contract: KindStore::edit_kind.
DELETE FROM budgets WHERE kind = ?1;
