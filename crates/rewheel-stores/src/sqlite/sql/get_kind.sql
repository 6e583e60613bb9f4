-- get_kind: reads one kind.
SELECT name, settings, takeovers_max, paused, parked_ms, parked_reason, prober, generation, suspects, forced, version
  FROM kinds WHERE name = ?1;
