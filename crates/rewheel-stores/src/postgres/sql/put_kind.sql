-- put_kind: settings of a kind, new or known; pause and park stay. A new one begins with version $4. Contract: KindStore::put_kinds.
INSERT INTO rewheel.kinds AS known (name, settings, takeovers_max, paused, generation, version) VALUES ($1, $2, $3, false, 0, $4)
ON CONFLICT (name) DO UPDATE SET settings = excluded.settings, takeovers_max = excluded.takeovers_max, version = known.version + 1;
