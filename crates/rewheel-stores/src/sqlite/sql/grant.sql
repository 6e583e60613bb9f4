-- grant: writes the retry budget of kind ?1 after a grant: balance ?2, counted up to ?3. Contract: KindStore::grant.
INSERT INTO budgets (kind, balance, counted_ms) VALUES (?1, ?2, ?3)
ON CONFLICT (kind) DO UPDATE SET balance = excluded.balance, counted_ms = excluded.counted_ms;
