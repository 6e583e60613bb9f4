-- history: reads a number of rows from one time to before another, after a position. Contract: HistoryStore::history.
SELECT start_ms, reporter, data FROM rewheel_history
 WHERE start_ms >= ? AND start_ms < ? AND (start_ms > ? OR start_ms = ? AND reporter > ?)
 ORDER BY start_ms, reporter LIMIT ?
