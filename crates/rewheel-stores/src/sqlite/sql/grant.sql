-- grant: what is left of the retries that a kind has earned. Contract: KindStore::grant. ?1 kind, ?2 balance, ?3 counted.
INSERT INTO budgets (kind, balance, counted_ms) VALUES (?1, ?2, ?3)
ON CONFLICT (kind) DO UPDATE SET balance = excluded.balance, counted_ms = excluded.counted_ms;
