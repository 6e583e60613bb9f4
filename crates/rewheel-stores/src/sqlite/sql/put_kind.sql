-- put_kind: writes the settings of a kind, new or existing; pausing and parking stay unchanged. A new kind starts with version ?4. ?5 is
-- the number of the change. Contract: KindStore::put_kinds.
INSERT INTO kinds (name, settings, takeovers_max, paused, generation, version, changed, blocks_on_dead)
VALUES (?1, ?2, ?3, 0, 0, ?4, ?5, ?6)
ON CONFLICT (name) DO UPDATE SET settings = excluded.settings, takeovers_max = excluded.takeovers_max, version = version + 1,
                                 changed = excluded.changed, blocks_on_dead = excluded.blocks_on_dead;
