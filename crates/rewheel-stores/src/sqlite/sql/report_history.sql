-- report_history: stores what node ?2 counted in the minute at ?1, in place of its previous report. Contract: HistoryStore::report_history.
INSERT INTO history (start_ms, reporter, data) VALUES (?1, ?2, ?3)
    ON CONFLICT (start_ms, reporter) DO UPDATE SET data = excluded.data;
