-- lock_kind: reads kinds for a change. The lock waits for inserts of these kinds, which share it.
SELECT name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced, version, parked_until_ms, blocks_on_dead
  FROM rewheel_kinds WHERE name IN ({list}) ORDER BY name FOR UPDATE
