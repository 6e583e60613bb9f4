-- put_kind: settings of a kind, new or known; pause and park stay. Contract: KindStore::put_kinds.
INSERT INTO rewheel.kinds (name, settings, takeovers_max, paused, generation) VALUES ($1, $2, $3, false, 0)
ON CONFLICT (name) DO UPDATE SET settings = excluded.settings, takeovers_max = excluded.takeovers_max;
