-- put_kinds: writes the settings of kinds, $1 to $3 and $5, new or existing; pausing and parking stay unchanged. A new kind starts with version
-- $4. Contract: KindStore::put_kinds.
INSERT INTO rewheel.kinds AS known (name, settings, takeovers_max, paused, generation, version, changed, blocks_on_dead)
SELECT name, settings, takeovers_max, false, 0, $4, rewheel.change_number(), blocks_on_dead
  FROM unnest($1::text[], $2::text[], $3::bigint[], $5::bool[]) AS given (name, settings, takeovers_max, blocks_on_dead)
ON CONFLICT (name) DO UPDATE SET settings = excluded.settings, takeovers_max = excluded.takeovers_max, version = known.version + 1,
                                 changed = excluded.changed, blocks_on_dead = excluded.blocks_on_dead;
