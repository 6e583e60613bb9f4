-- delete_budget: deletes the retry budget of a deleted kind. Contract: KindStore::edit_kind.
DELETE FROM rewheel_budgets WHERE kind = ?
