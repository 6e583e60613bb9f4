-- insert_budgets: creates retry budgets for kinds that have none, with the values of RetryPool::fresh. $1 is the clock offset.
INSERT INTO rewheel.budgets (kind, balance, counted_ms)
SELECT kind, $3, rewheel.now_ms() + $1 - $4 FROM unnest($2) AS kind ORDER BY kind
ON CONFLICT (kind) DO NOTHING;
