-- get_kind: reads one kind.
SELECT name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced, version, parked_until_ms, blocks_on_dead
  FROM rewheel_kinds WHERE name = ?
