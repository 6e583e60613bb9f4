-- insert_budgets: pools for kinds that have none yet, with what RetryPool::fresh has. $1 moves the clock.
INSERT INTO rewheel.budgets (kind, balance, counted_ms)
SELECT kind, $3, rewheel.now_ms() + $1 - $4 FROM unnest($2) AS kind ORDER BY kind
ON CONFLICT (kind) DO NOTHING;
