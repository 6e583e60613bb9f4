-- report_history: stores what a node counted in a minute, in place of its previous report. Contract: HistoryStore::report_history.
INSERT INTO rewheel_history (start_ms, reporter, data) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE data = VALUES(data)
