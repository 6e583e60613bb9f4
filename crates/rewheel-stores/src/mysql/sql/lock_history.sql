-- lock_history: locks the rows from one time to before another, so that one node at a time folds them.
SELECT start_ms FROM rewheel_history WHERE start_ms >= ? AND start_ms < ? FOR UPDATE
