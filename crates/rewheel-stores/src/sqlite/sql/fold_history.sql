-- fold_history: deletes the rows from ?1 to before ?2. The caller stores the row that replaces them. Contract: HistoryStore::fold_history.
DELETE FROM history WHERE start_ms >= ?1 AND start_ms < ?2;
