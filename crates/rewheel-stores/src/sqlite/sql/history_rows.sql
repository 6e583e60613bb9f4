-- history_rows: counts the rows from ?1 to before ?2.
SELECT count(*) FROM history WHERE start_ms >= ?1 AND start_ms < ?2;
