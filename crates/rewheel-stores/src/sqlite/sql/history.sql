-- history: reads at most ?5 rows from ?1 to before ?2, after position (?3, ?4). Contract: HistoryStore::history.
SELECT start_ms, reporter, data FROM history
 WHERE start_ms >= ?1 AND start_ms < ?2 AND (start_ms, reporter) > (?3, ?4)
 ORDER BY start_ms, reporter LIMIT ?5;
