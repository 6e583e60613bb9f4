-- fold_history: deletes the rows from one time to before another. The caller stores the row that replaces them. Contract:
-- HistoryStore::fold_history.
DELETE FROM rewheel_history WHERE start_ms >= ? AND start_ms < ?
