-- put_history: stores a merged row.
INSERT INTO rewheel.history (start_ms, reporter, data) VALUES ($1, $2, $3)
    ON CONFLICT (start_ms, reporter) DO UPDATE SET data = excluded.data;
