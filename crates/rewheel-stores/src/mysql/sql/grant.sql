-- grant: writes the retry budget of a kind after a grant. Contract: KindStore::grant.
UPDATE rewheel_budgets SET balance = ?, counted_ms = ? WHERE kind = ?
